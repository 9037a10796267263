package controlplane

import (
	"context"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// apiServerCompactKey is the key in which API servers publish etcd's compacted revision. They stop serving
// older revisions from their caches.
const apiServerCompactKey = "compact_rev_key"

// DialEtcd connects to a sandbox's etcd.
func DialEtcd(url string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:   []string{url},
		DialTimeout: 5 * time.Second,
		Logger:      zap.NewNop(),
	})
}

// Compact discards etcd's history before its current revision, like the API server's own compactor every five
// minutes, and returns that revision.
//
// Lists at an older exact revision and older continue tokens then expire (410 Gone). Watches from an older
// revision work as long as the API server's watch cache has it: restart the API server to expire them too.
func (c *Client) Compact(ctx context.Context) (int64, error) {
	client, err := DialEtcd(c.state.EtcdURL)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	resp, err := client.Get(ctx, apiServerCompactKey, clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("read etcd's revision: %w", err)
	}
	revision := resp.Header.Revision
	if _, err := client.Put(ctx, apiServerCompactKey, strconv.FormatInt(revision, 10)); err != nil {
		return 0, err
	}
	if _, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
		return 0, fmt.Errorf("compact etcd at revision %d: %w", revision, err)
	}
	return revision, nil
}
