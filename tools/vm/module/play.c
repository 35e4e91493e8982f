// SPDX-License-Identifier: GPL-2.0
/* How to behave, in debugfs. */
#include <linux/debugfs.h>
#include <linux/rtnetlink.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "dcbtest.h"

static const char * const object_names[OBJECTS] = {
	"ets", "maxrate", "pfc", "buffer", "app", "trust", "dcbx",
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
	dcbtest_set_ops(s->of);
	rtnl_unlock();
	return n;
}

static const struct file_operations objects_file = {
	.owner = THIS_MODULE, .open = simple_open, .read = objects_read, .write = objects_write,
};

void dcbtest_add_files(struct dcbtest *p, struct dentry *root)
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
