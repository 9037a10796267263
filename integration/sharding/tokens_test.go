package sharding_test

import (
	"context"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/shard"
)

// TestTokens checks that fencing tokens grow even if Leases are reset or deleted while no replica runs.
func TestTokens(t *testing.T) {
	const group, shards = "tokens", 2
	namespace := harness.Namespace(t)
	client, err := kubernetes.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	leases := client.CoordinationV1().Leases(namespace)
	tokens := map[int]int64{}
	acquireAll := func() {
		t.Helper()
		member, err := shard.New(shard.Options{Config: harness.Config(t), Namespace: namespace, Name: group,
			Shards: shards})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex
		held := map[int]int64{}
		err = member.Run(ctx, shard.Handler{Acquired: func(ownerships []*shard.Ownership) {
			mu.Lock()
			defer mu.Unlock()
			for _, ownership := range ownerships {
				held[ownership.Shard()] = ownership.Token()
			}
			if len(held) == shards {
				cancel()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		for k, token := range held {
			if token <= tokens[k] {
				t.Errorf("shard %d has the token %d after %d", k, token, tokens[k])
			}
			tokens[k] = token
		}
	}
	acquireAll()
	for _, patch := range []string{`{"spec":{"leaseTransitions":0}}`,
		`{"metadata":{"annotations":null},"spec":null}`} {
		list, err := leases.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, lease := range list.Items {
			_, err := leases.Patch(t.Context(), lease.Name, types.MergePatchType, []byte(patch),
				metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		acquireAll()
	}
	if err := leases.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	acquireAll()
}
