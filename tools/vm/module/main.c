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
#include <linux/module.h>
#include <linux/pci.h>

#include "dcbtest.h"

#define VENDOR_REDHAT 0x1b36
#define DEVICE_TESTDEV 0x0005
#define PORTS_MAX 4

static unsigned int ports = 1;
static bool fw_lldp;
unsigned int ets_cap = 8, pfc_cap = 8, total_buffer = 262016;
bool pause_excludes_pfc;
module_param(ports, uint, 0444);
MODULE_PARM_DESC(ports, "network devices of each PCI function, 1 to 4");
module_param(ets_cap, uint, 0444);
MODULE_PARM_DESC(ets_cap, "traffic classes, 1 to 8");
module_param(pfc_cap, uint, 0444);
MODULE_PARM_DESC(pfc_cap, "priorities that may have PFC at a time");
module_param(total_buffer, uint, 0444);
MODULE_PARM_DESC(total_buffer, "bytes of all receive buffers");
module_param(fw_lldp, bool, 0444);
MODULE_PARM_DESC(fw_lldp, "start with the private flag fw-lldp-agent on, as E810 does");
module_param(pause_excludes_pfc, bool, 0444);
MODULE_PARM_DESC(pause_excludes_pfc, "refuse to set link pause while PFC is on, as ice does");

static struct dentry *root;

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
	d->ethtool_ops = &dcbtest_ethtool;
	d->dcbnl_ops = &p->ops;
	d->max_mtu = 9978;
	d->flags |= IFF_NOARP;
	eth_hw_addr_random(d);
	p->dev = d;
	dcbtest_set_ops(p);
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
		dcbtest_add_files(netdev_priv(d), root);
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
