// SPDX-License-Identifier: GPL-2.0
/* IEEE DCB: what dcbnl asks of a driver. */
#include "dcbtest.h"

/* Around each setter: begin says whether the new value is to be stored, end how the call is answered. */
static bool begin(struct dcbtest *p, enum object o, int *rc)
{
	p->sets++;
	*rc = 0;
	if (p->refuse.mask & BIT(o)) {
		*rc = atomic_read(&p->answer);
		return false;
	}
	if (o != DCBX && p->flags & BIT(FW_LLDP)) {
		*rc = -EINVAL; /* the firmware's agent owns the settings */
		return false;
	}
	return !(p->lie.mask & BIT(o));
}

static int end(struct dcbtest *p, enum object o, bool changed)
{
	if (changed && p->flap.mask & BIT(o)) {
		p->flaps++;
		netif_carrier_off(p->dev);
		netif_carrier_on(p->dev);
	}
	return p->odd.mask & BIT(o) ? atomic_read(&p->answer) : 0;
}

static int get_ets(struct net_device *d, struct ieee_ets *e)
{
	*e = ((struct dcbtest *)netdev_priv(d))->ets;
	return 0;
}

static int check_ets(const struct ieee_ets *e)
{
	int i, sum = 0, n = 0;

	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++) {
		if (e->prio_tc[i] >= ets_cap)
			return -EINVAL;
		switch (e->tc_tsa[i]) {
		case IEEE_8021QAZ_TSA_ETS:
			sum += e->tc_tx_bw[i];
			n++;
			break;
		case IEEE_8021QAZ_TSA_STRICT:
		case IEEE_8021QAZ_TSA_VENDOR:
			break;
		default:
			return -EOPNOTSUPP; /* no credit-based shaper */
		}
	}
	return n && sum != 100 ? -EINVAL : 0;
}

static int set_ets(struct net_device *d, struct ieee_ets *e)
{
	struct dcbtest *p = netdev_priv(d);
	struct ieee_ets was = p->ets;
	int rc;

	if (!begin(p, ETS, &rc))
		return rc;
	rc = check_ets(e);
	if (rc)
		return rc;
	p->ets = *e;
	p->ets.ets_cap = ets_cap;
	return end(p, ETS, memcmp(&was, &p->ets, sizeof(was)));
}

static int get_pfc(struct net_device *d, struct ieee_pfc *e)
{
	*e = ((struct dcbtest *)netdev_priv(d))->pfc;
	return 0;
}

static int set_pfc(struct net_device *d, struct ieee_pfc *e)
{
	struct dcbtest *p = netdev_priv(d);
	u8 was = p->pfc.pfc_en;
	int rc;

	if (!begin(p, PFC, &rc))
		return rc;
	if (hweight8(e->pfc_en) > pfc_cap)
		return -EINVAL;
	p->pfc.pfc_en = e->pfc_en;
	p->pfc.mbc = e->mbc;
	p->pfc.delay = e->delay; /* requests and indications are counters */
	return end(p, PFC, was != p->pfc.pfc_en);
}

static int get_maxrate(struct net_device *d, struct ieee_maxrate *r)
{
	*r = ((struct dcbtest *)netdev_priv(d))->rate;
	return 0;
}

static int set_maxrate(struct net_device *d, struct ieee_maxrate *r)
{
	struct dcbtest *p = netdev_priv(d);
	struct ieee_maxrate was = p->rate;
	int rc;

	if (!begin(p, MAXRATE, &rc))
		return rc;
	p->rate = *r;
	return end(p, MAXRATE, memcmp(&was, r, sizeof(was)));
}

static int get_buffer(struct net_device *d, struct dcbnl_buffer *b)
{
	*b = ((struct dcbtest *)netdev_priv(d))->buf;
	return 0;
}

static int set_buffer(struct net_device *d, struct dcbnl_buffer *b)
{
	struct dcbtest *p = netdev_priv(d);
	struct dcbnl_buffer was = p->buf;
	u64 sum = 0;
	int i, rc;

	if (!begin(p, BUFFER, &rc))
		return rc;
	for (i = 0; i < DCBX_MAX_BUFFERS; i++)
		sum += b->buffer_size[i];
	if (sum > total_buffer)
		return -EINVAL;
	for (i = 0; i < IEEE_8021Q_MAX_PRIORITIES; i++)
		if (b->prio2buffer[i] >= DCBX_MAX_BUFFERS)
			return -EINVAL;
	p->buf = *b;
	p->buf.total_size = total_buffer;
	return end(p, BUFFER, memcmp(&was, &p->buf, sizeof(was)));
}

static int check_app(const struct dcb_app *a)
{
	if (a->priority >= IEEE_8021QAZ_MAX_TCS)
		return -EINVAL; /* the core takes priority 8 and DSCP 64 */
	return a->selector == IEEE_8021QAZ_APP_SEL_DSCP && a->protocol >= 64 ? -EINVAL : 0;
}

/* Takes the entries with another priority away; true if the same entry is there. */
static bool replace_app(struct net_device *d, const struct dcb_app *a)
{
	struct dcb_app old = { .selector = a->selector, .protocol = a->protocol };
	unsigned long mask = dcb_ieee_getapp_mask(d, &old);
	int p;

	for_each_set_bit(p, &mask, IEEE_8021QAZ_MAX_TCS) {
		old.priority = p;
		if (p != a->priority)
			dcb_ieee_delapp(d, &old);
	}
	return mask & BIT(a->priority);
}

static int set_app(struct net_device *d, struct dcb_app *a)
{
	struct dcbtest *p = netdev_priv(d);
	int rc;

	if (!begin(p, APP, &rc))
		return rc;
	rc = check_app(a);
	if (rc)
		return rc;
	if (p->replace && a->selector == IEEE_8021QAZ_APP_SEL_DSCP && replace_app(d, a))
		return end(p, APP, false);
	rc = dcb_ieee_setapp(d, a);
	return rc ?: end(p, APP, true);
}

static int del_app(struct net_device *d, struct dcb_app *a)
{
	struct dcbtest *p = netdev_priv(d);
	int rc;

	if (!begin(p, APP, &rc))
		return rc;
	rc = dcb_ieee_delapp(d, a);
	return rc ?: end(p, APP, true);
}

static int get_trust(struct net_device *d, u8 *sel, int *n)
{
	struct dcbtest *p = netdev_priv(d);

	memcpy(sel, p->trust, p->ntrust);
	*n = p->ntrust;
	return 0;
}

static int set_trust(struct net_device *d, u8 *sel, int n)
{
	struct dcbtest *p = netdev_priv(d);
	bool changed;
	int rc, i;

	if (!begin(p, TRUST, &rc))
		return rc;
	for (i = 0; i < n; i++)
		if (sel[i] != IEEE_8021QAZ_APP_SEL_DSCP && sel[i] != DCB_APP_SEL_PCP)
			return -EOPNOTSUPP;
	changed = n != p->ntrust || memcmp(p->trust, sel, n);
	memcpy(p->trust, sel, n);
	p->ntrust = n;
	return end(p, TRUST, changed);
}

static u8 get_dcbx(struct net_device *d)
{
	struct dcbtest *p = netdev_priv(d);

	if (p->flags & BIT(FW_LLDP))
		return (p->dcbx & ~DCB_CAP_DCBX_HOST) | DCB_CAP_DCBX_LLD_MANAGED;
	return p->dcbx;
}

static u8 set_dcbx(struct net_device *d, u8 mode)
{
	struct dcbtest *p = netdev_priv(d);
	u8 was = p->dcbx;
	int rc;

	if (!begin(p, DCBX, &rc))
		return rc;
	if (p->flags & BIT(FW_LLDP) || mode & (DCB_CAP_DCBX_VER_CEE | DCB_CAP_DCBX_LLD_MANAGED))
		return 1; /* anything but 0 is a refusal */
	p->dcbx = mode;
	return end(p, DCBX, was != mode);
}

void dcbtest_set_ops(struct dcbtest *p)
{
	u32 no_get = p->absent.mask, no_set = p->absent.mask | p->missing.mask;

	p->ops = (struct dcbnl_rtnl_ops){
		.ieee_getets = no_get & BIT(ETS) ? NULL : get_ets,
		.ieee_setets = no_set & BIT(ETS) ? NULL : set_ets,
		.ieee_getpfc = no_get & BIT(PFC) ? NULL : get_pfc,
		.ieee_setpfc = no_set & BIT(PFC) ? NULL : set_pfc,
		.ieee_getmaxrate = no_get & BIT(MAXRATE) ? NULL : get_maxrate,
		.ieee_setmaxrate = no_set & BIT(MAXRATE) ? NULL : set_maxrate,
		.dcbnl_getbuffer = no_get & BIT(BUFFER) ? NULL : get_buffer,
		.dcbnl_setbuffer = no_set & BIT(BUFFER) ? NULL : set_buffer,
		.ieee_setapp = no_set & BIT(APP) ? NULL : set_app,
		.ieee_delapp = no_set & BIT(APP) ? NULL : del_app,
		.dcbnl_getapptrust = no_get & BIT(TRUST) ? NULL : get_trust,
		.dcbnl_setapptrust = no_set & BIT(TRUST) ? NULL : set_trust,
		.getdcbx = no_get & BIT(DCBX) ? NULL : get_dcbx,
		.setdcbx = no_set & BIT(DCBX) ? NULL : set_dcbx,
	};
}
