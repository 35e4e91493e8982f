// SPDX-License-Identifier: GPL-2.0
/*
 * dcbtest: a NIC without a wire, for tests of programs that configure NICs.
 *
 * It binds to QEMU's pci-testdev, so each device has a PCI address as real NICs do, and registers the network
 * devices dcb0, dcb1, ... with IEEE DCB state (ETS, PFC, rates, buffers, DCBX, trust; the application table is the
 * kernel's own) and the ethtool objects around it (pause, rings, FEC, private flags, statistics). It moves no
 * traffic: it stores what it is told and refuses what a NIC would refuse.
 *
 * In debugfs, dcbtest/DEVICE/ makes it misbehave as drivers do. A file of objects takes words (ets maxrate pfc buffer
 * app trust dcbx); an empty line clears it.
 *
 *	absent	 objects without a getter and a setter
 *	missing	 objects without a setter: dcbnl answers success and nothing happens
 *	lie	 the setter answers success and keeps the old value
 *	refuse	 the setter does nothing and answers `answer`
 *	odd	 the setter does its work, then answers `answer`
 *	flap	 the setter takes the link down and up when it changes something
 *	answer	 a number; -16 (EBUSY) at first
 *	replace	 Y: a new priority of a code point replaces the old entry by itself
 *	sets	 how often a setter was called (0 or 1 call for each object, entry or mode in a message)
 *	flaps	 how often the link was toggled
 *	requests/PRIORITY, indications/PRIORITY	 PFC frames sent and received
 */
#include <linux/debugfs.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <net/dcbnl.h>

#define VENDOR_REDHAT 0x1b36
#define DEVICE_TESTDEV 0x0005
#define PORTS_MAX 4
#define RING_MAX 8192

static unsigned int ports = 1, ets_cap = 8, pfc_cap = 8, total_buffer = 262016;
static char *driver = "dcbtest";
static bool fw_lldp, pause_excludes_pfc;
module_param(ports, uint, 0444);
MODULE_PARM_DESC(ports, "network devices of each PCI function, 1 to 4");
module_param(ets_cap, uint, 0444);
MODULE_PARM_DESC(ets_cap, "traffic classes, 1 to 8");
module_param(pfc_cap, uint, 0444);
MODULE_PARM_DESC(pfc_cap, "priorities that may have PFC at a time");
module_param(total_buffer, uint, 0444);
MODULE_PARM_DESC(total_buffer, "bytes of all receive buffers");
module_param(driver, charp, 0444);
MODULE_PARM_DESC(driver, "driver name that ethtool shows");
module_param(fw_lldp, bool, 0444);
MODULE_PARM_DESC(fw_lldp, "start with the private flag fw-lldp-agent on, as E810 does");
module_param(pause_excludes_pfc, bool, 0444);
MODULE_PARM_DESC(pause_excludes_pfc, "refuse to set link pause while PFC is on, as ice does");

enum object { ETS, MAXRATE, PFC, BUFFER, APP, TRUST, DCBX, OBJECTS };
static const char * const object_names[OBJECTS] = {
	"ets", "maxrate", "pfc", "buffer", "app", "trust", "dcbx",
};

enum flag { FW_LLDP, DOWN_ON_CLOSE, FLAGS };
static const char flag_names[FLAGS][ETH_GSTRING_LEN] = {
	"fw-lldp-agent", "link-down-on-close",
};

struct dcbtest;

/* A file of objects: the words in it, as a mask. */
struct objects {
	struct dcbtest *of;
	u32 mask;
};

struct dcbtest {
	struct net_device *dev;
	struct dcbnl_rtnl_ops ops; /* of this device alone: absent and missing objects are NULL in it */

	struct ieee_ets ets;
	struct ieee_pfc pfc;
	struct ieee_maxrate rate;
	struct dcbnl_buffer buf;
	u8 trust[IEEE_8021QAZ_APP_SEL_MAX + 1];
	int ntrust;
	u8 dcbx;
	struct ethtool_pauseparam pause;
	u32 rx_ring, tx_ring, fec, flags;

	struct dentry *dir;
	struct objects absent, missing, lie, refuse, odd, flap;
	atomic_t answer;
	bool replace;
	u32 sets, flaps;
};

static struct dentry *root;

/* Each setter is three steps: begin says whether the new value is to be stored, end how the call is answered. */
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

/* The operations of this device as its driver has them now. */
static void set_ops(struct dcbtest *p)
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

static void get_drvinfo(struct net_device *d, struct ethtool_drvinfo *i)
{
	strscpy(i->driver, driver, sizeof(i->driver));
	strscpy(i->fw_version, "22.41.1000", sizeof(i->fw_version));
	strscpy(i->bus_info, pci_name(to_pci_dev(d->dev.parent)), sizeof(i->bus_info));
}

static int get_link(struct net_device *d, struct ethtool_link_ksettings *k)
{
	k->base.speed = SPEED_400000;
	k->base.duplex = DUPLEX_FULL;
	k->base.port = PORT_DA;
	k->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static void get_pause(struct net_device *d, struct ethtool_pauseparam *e)
{
	*e = ((struct dcbtest *)netdev_priv(d))->pause;
}

static int set_pause(struct net_device *d, struct ethtool_pauseparam *e)
{
	struct dcbtest *p = netdev_priv(d);

	if (e->autoneg)
		return -EINVAL; /* as mlx5 */
	if (pause_excludes_pfc && p->pfc.pfc_en)
		return -EOPNOTSUPP;
	p->pause.rx_pause = e->rx_pause;
	p->pause.tx_pause = e->tx_pause;
	return 0;
}

static void get_ring(struct net_device *d, struct ethtool_ringparam *r, struct kernel_ethtool_ringparam *k,
		     struct netlink_ext_ack *ack)
{
	struct dcbtest *p = netdev_priv(d);

	r->rx_max_pending = RING_MAX;
	r->tx_max_pending = RING_MAX;
	r->rx_pending = p->rx_ring;
	r->tx_pending = p->tx_ring;
}

static int set_ring(struct net_device *d, struct ethtool_ringparam *r, struct kernel_ethtool_ringparam *k,
		    struct netlink_ext_ack *ack)
{
	struct dcbtest *p = netdev_priv(d);

	if (r->rx_pending < 64 || r->tx_pending < 64) {
		NL_SET_ERR_MSG(ack, "a ring has at least 64 entries");
		return -EINVAL;
	}
	p->rx_ring = roundup_pow_of_two(r->rx_pending); /* and does not say so, as many NICs */
	p->tx_ring = roundup_pow_of_two(r->tx_pending);
	return 0;
}

static int get_fec(struct net_device *d, struct ethtool_fecparam *f)
{
	struct dcbtest *p = netdev_priv(d);

	f->fec = p->fec;
	f->active_fec = p->fec & ETHTOOL_FEC_AUTO ? ETHTOOL_FEC_RS : p->fec;
	return 0;
}

static int set_fec(struct net_device *d, struct ethtool_fecparam *f)
{
	struct dcbtest *p = netdev_priv(d);

	if (f->fec & ETHTOOL_FEC_LLRS || hweight32(f->fec) != 1)
		return -EOPNOTSUPP;
	p->fec = f->fec;
	return 0;
}

static u32 get_flags(struct net_device *d)
{
	return ((struct dcbtest *)netdev_priv(d))->flags;
}

static int set_flags(struct net_device *d, u32 flags)
{
	((struct dcbtest *)netdev_priv(d))->flags = flags;
	return 0;
}

static int count_strings(struct net_device *d, int set)
{
	switch (set) {
	case ETH_SS_PRIV_FLAGS:
		return FLAGS;
	case ETH_SS_STATS:
		return 2 * IEEE_8021Q_MAX_PRIORITIES;
	}
	return -EOPNOTSUPP;
}

static void get_strings(struct net_device *d, u32 set, u8 *to)
{
	int i;

	switch (set) {
	case ETH_SS_PRIV_FLAGS:
		memcpy(to, flag_names, sizeof(flag_names));
		break;
	case ETH_SS_STATS:
		for (i = 0; i < IEEE_8021Q_MAX_PRIORITIES; i++) {
			ethtool_sprintf(&to, "tx_prio%d_pause", i);
			ethtool_sprintf(&to, "rx_prio%d_pause", i);
		}
		break;
	}
}

static void get_stats(struct net_device *d, struct ethtool_stats *s, u64 *to)
{
	struct dcbtest *p = netdev_priv(d);
	int i;

	for (i = 0; i < IEEE_8021Q_MAX_PRIORITIES; i++) {
		*to++ = p->pfc.requests[i];
		*to++ = p->pfc.indications[i];
	}
}

static const struct ethtool_ops ethtool = {
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = get_link,
	.get_pauseparam = get_pause, .set_pauseparam = set_pause,
	.get_ringparam = get_ring, .set_ringparam = set_ring,
	.get_fecparam = get_fec, .set_fecparam = set_fec,
	.get_priv_flags = get_flags, .set_priv_flags = set_flags,
	.get_sset_count = count_strings, .get_strings = get_strings,
	.get_ethtool_stats = get_stats,
};

static ssize_t objects_read(struct file *f, char __user *to, size_t n, loff_t *off)
{
	struct objects *s = f->private_data;
	char text[64];
	int i, len = 0;

	for (i = 0; i < OBJECTS; i++)
		if (s->mask & BIT(i))
			len += scnprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "", object_names[i]);
	len += scnprintf(text + len, sizeof(text) - len, "\n");
	return simple_read_from_buffer(to, n, off, text, len);
}

static ssize_t objects_write(struct file *f, const char __user *from, size_t n, loff_t *off)
{
	struct objects *s = f->private_data;
	char text[64], *rest = text, *word;
	u32 mask = 0;
	int i;

	if (n >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, n))
		return -EFAULT;
	text[n] = 0;
	while ((word = strsep(&rest, " \n"))) {
		if (!*word)
			continue;
		i = match_string(object_names, OBJECTS, word);
		if (i < 0)
			return i;
		mask |= BIT(i);
	}
	rtnl_lock();
	s->mask = mask;
	set_ops(s->of);
	rtnl_unlock();
	return n;
}

static const struct file_operations objects_file = {
	.owner = THIS_MODULE, .open = simple_open, .read = objects_read, .write = objects_write,
};

static void add_files(struct dcbtest *p)
{
	struct { const char *name; struct objects *of; } sets[] = {
		{ "absent", &p->absent }, { "missing", &p->missing }, { "lie", &p->lie },
		{ "refuse", &p->refuse }, { "odd", &p->odd }, { "flap", &p->flap },
	};
	struct dentry *tx, *rx;
	char name[4];
	int i;

	p->dir = debugfs_create_dir(netdev_name(p->dev), root);
	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		sets[i].of->of = p;
		debugfs_create_file(sets[i].name, 0600, p->dir, sets[i].of, &objects_file);
	}
	debugfs_create_atomic_t("answer", 0600, p->dir, &p->answer);
	debugfs_create_bool("replace", 0600, p->dir, &p->replace);
	debugfs_create_u32("sets", 0600, p->dir, &p->sets);
	debugfs_create_u32("flaps", 0600, p->dir, &p->flaps);
	tx = debugfs_create_dir("requests", p->dir);
	rx = debugfs_create_dir("indications", p->dir);
	for (i = 0; i < IEEE_8021Q_MAX_PRIORITIES; i++) {
		scnprintf(name, sizeof(name), "%d", i);
		debugfs_create_u64(name, 0600, tx, &p->pfc.requests[i]);
		debugfs_create_u64(name, 0600, rx, &p->pfc.indications[i]);
	}
}

static netdev_tx_t xmit(struct sk_buff *skb, struct net_device *d)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops netdev = {
	.ndo_start_xmit = xmit, .ndo_validate_addr = eth_validate_addr, .ndo_set_mac_address = eth_mac_addr,
};

static void setup(struct net_device *d)
{
	struct dcbtest *p = netdev_priv(d);
	int i;

	ether_setup(d);
	d->netdev_ops = &netdev;
	d->ethtool_ops = &ethtool;
	d->dcbnl_ops = &p->ops;
	d->max_mtu = 9978;
	d->flags |= IFF_NOARP;
	eth_hw_addr_random(d);
	p->dev = d;
	set_ops(p);
	p->ets.ets_cap = ets_cap; /* every class strict */
	p->pfc.pfc_cap = pfc_cap;
	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++)
		p->ets.prio_tc[i] = i % ets_cap;
	p->buf.total_size = total_buffer;
	p->buf.buffer_size[0] = total_buffer;
	p->trust[0] = DCB_APP_SEL_PCP;
	p->ntrust = 1;
	p->dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
	p->pause.rx_pause = 1;
	p->pause.tx_pause = 1;
	p->rx_ring = 1024;
	p->tx_ring = 1024;
	p->fec = ETHTOOL_FEC_AUTO;
	p->flags = fw_lldp ? BIT(FW_LLDP) : 0;
	atomic_set(&p->answer, -EBUSY);
}

/* The ports of one PCI function. */
struct card {
	struct net_device *port[PORTS_MAX];
};

static void remove(struct pci_dev *pci)
{
	struct card *c = pci_get_drvdata(pci);
	int i;

	for (i = 0; i < PORTS_MAX; i++)
		if (c->port[i]) {
			debugfs_remove_recursive(((struct dcbtest *)netdev_priv(c->port[i]))->dir);
			unregister_netdev(c->port[i]);
			free_netdev(c->port[i]);
		}
}

static int probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	struct card *c = devm_kzalloc(&pci->dev, sizeof(*c), GFP_KERNEL);
	struct net_device *d;
	int i, rc;

	if (!c)
		return -ENOMEM;
	pci_set_drvdata(pci, c);
	for (i = 0; i < ports; i++) {
		d = alloc_netdev(sizeof(struct dcbtest), "dcb%d", NET_NAME_ENUM, setup);
		rc = -ENOMEM;
		if (!d)
			goto undo;
		SET_NETDEV_DEV(d, &pci->dev);
		d->dev_port = i;
		rc = register_netdev(d);
		if (rc) {
			free_netdev(d);
			goto undo;
		}
		netif_carrier_on(d);
		add_files(netdev_priv(d));
		c->port[i] = d;
	}
	return 0;
undo:
	remove(pci);
	return rc;
}

static const struct pci_device_id ids[] = { { PCI_DEVICE(VENDOR_REDHAT, DEVICE_TESTDEV) }, {} };
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver pci_driver = { .name = "dcbtest", .id_table = ids, .probe = probe, .remove = remove };

static int __init start(void)
{
	int rc;

	if (!ports || ports > PORTS_MAX || !ets_cap || ets_cap > IEEE_8021QAZ_MAX_TCS || pfc_cap > IEEE_8021Q_MAX_PRIORITIES)
		return -EINVAL;
	root = debugfs_create_dir("dcbtest", NULL);
	rc = pci_register_driver(&pci_driver);
	if (rc)
		debugfs_remove_recursive(root);
	return rc;
}

static void __exit stop(void)
{
	pci_unregister_driver(&pci_driver);
	debugfs_remove_recursive(root);
}

module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a NIC without a wire: IEEE DCB and ethtool state for tests");
