package live

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	ours "github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/readapi"
)

// TestSharedInformers has client-go's informers follow all by each server, while objects change.
func TestSharedInformers(t *testing.T) {
	for _, key := range bothKeys {
		t.Run(string(key), func(t *testing.T) {
			s := shared(t, key, 3)
			ctx, cancel := context.WithCancel(t.Context())
			var informers []cache.SharedIndexInformer
			for _, server := range s.servers {
				client, err := dynamic.NewForConfig(readapi.Config(server))
				s.ok(err)
				factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
				informers = append(informers, factory.ForResource(workloads).Informer())
				factory.Start(ctx.Done())
				defer factory.Shutdown()
			}
			defer cancel()
			for range 15 {
				s.change()
			}
			want := s.list(s.cluster, nil)
			for i, informer := range informers {
				for deadline := time.Now().Add(time.Minute / 2); ; time.Sleep(10 * time.Millisecond) { // polls, with an end
					var diff string
					if len(informer.GetStore().ListKeys()) != len(want.Object["items"].([]any)) {
						diff = "their number"
					} else {
						for _, item := range want.Object["items"].([]any) {
							u := unstructured.Unstructured{Object: item.(map[string]any)}
							got, _, _ := informer.GetStore().GetByKey(u.GetNamespace() + "/" + u.GetName())
							if o, ok := got.(*unstructured.Unstructured); !ok || o.GetResourceVersion() != u.GetResourceVersion() {
								diff = u.GetName()
							}
						}
					}
					if diff == "" {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("the informer of the server %d differs in %s", i, diff)
					}
				}
			}
		})
	}
}

// TestShardsAreServed lists and watches what each server has, by each server.
func TestShardsAreServed(t *testing.T) {
	for _, key := range bothKeys {
		t.Run(string(key), func(t *testing.T) {
			s := shared(t, key, 3)
			before := s.list(s.cluster, nil)
			changed := map[string][]string{} // the versions of what changes, by who has it
			for _, item := range before.Object["items"].([]any)[:9] {
				o := &unstructured.Unstructured{Object: item.(map[string]any)}
				o.SetLabels(map[string]string{"changed": "true"})
				o, err := s.cluster.Client().Resource(workloads).Namespace(o.GetNamespace()).Update(t.Context(), o, metav1.UpdateOptions{})
				s.ok(err)
				for _, owner := range s.servers {
					if selector := owner.options.Sharding.ownSelector(); owner.options.Sharding.Shard.Contains(o) {
						changed[selector] = append(changed[selector], o.GetResourceVersion())
					}
				}
			}
			after := s.list(s.cluster, nil)
			for i, server := range s.servers {
				listed := 0
				for k, owner := range s.servers {
					selector, by := owner.options.Sharding.ownSelector(), servedByCache
					if k != i {
						by = servedByPart
					}
					query := url.Values{"shardSelector": {selector}, "resourceVersion": {after.GetResourceVersion()}}
					answer := ask(t, server, allWorkloads+"?"+query.Encode()).Header()
					if answer.Get(ServedHeader) != by || answer.Get(ShardHeader) != selector {
						t.Errorf("the shard %d is listed by %q, of %q", k, answer.Get(ServedHeader), answer.Get(ShardHeader))
					}
					list := s.list(server, query)
					if info, _, _ := unstructured.NestedString(list.Object, "metadata", "shardInfo", "selector"); info != selector {
						t.Errorf("the list is of %q", info)
					}
					listed += len(list.Object["items"].([]any))
					query = url.Values{"shardSelector": {selector}, "resourceVersion": {before.GetResourceVersion()}, "watch": {"1"}}
					watch := watchOf(t, server, allWorkloads+"?"+query.Encode())
					for _, want := range changed[selector] {
						if e, _ := watch.next(); e.Object.Metadata.ResourceVersion != want {
							t.Errorf("the shard %d tells of %s, want %s", k, e.Object.Metadata.ResourceVersion, want)
						}
					}
					watch.body.Close()
				}
				if want := len(after.Object["items"].([]any)); listed != want {
					t.Errorf("by the server %d the shards have %d objects, the cluster has %d", i, listed, want)
				}
			}
			two := s.servers[0].options.Sharding.ownSelector() + " || " + s.servers[2].options.Sharding.ownSelector()
			list := s.list(s.servers[1], url.Values{"shardSelector": {two}})
			if diff := cmp.Diff(s.list(s.cluster, url.Values{"shardSelector": {two}}).Object["items"], list.Object["items"]); diff != "" {
				t.Errorf("two shards together (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSharedRefusals asks for what servers of parts do not answer, and say so.
func TestSharedRefusals(t *testing.T) {
	s := shared(t, ours.ShardByUID, 3)
	own, half := s.servers[0].options.Sharding.ownSelector(), "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	query := QueryPath(demo, "v1", "", "workloads")
	for _, tt := range []struct {
		path string
		code int
		says string
	}{
		{allWorkloads + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", http.StatusUnprocessableEntity, "sendInitialEvents is forbidden"},
		{allWorkloads + "?watch=1&shardSelector=" + url.QueryEscape(half), http.StatusBadRequest, "watch what each of them has"},
		{allWorkloads + "?shardSelector=x", http.StatusBadRequest, "invalid shard selector"},
		{allWorkloads + "?shardSelector=" + url.QueryEscape(strings.ReplaceAll(own, "uid", "namespace")), http.StatusBadRequest, "shared among servers by object.metadata.uid"},
		{query, http.StatusBadRequest, "give as shardSelector"},
		{QueryPath(demo, "v1", "payments", "workloads"), http.StatusBadRequest, "give as shardSelector"},
		{query + "?shardSelector=" + url.QueryEscape("shardRange(object.metadata.uid, '0x0000000000000000', '0x1000000000000000')"), http.StatusBadRequest, "all that a server has"},
	} {
		if got := ask(t, s.servers[0], tt.path); got.Code != tt.code || !strings.Contains(got.Body.String(), tt.says) {
			t.Errorf("%s: %d %s", tt.path, got.Code, got.Body)
		}
	}
	if got := ask(t, s.servers[0], allWorkloads+"?watch=1&timeoutSeconds=1"); got.Header().Get(ServedHeader) != servedByCluster {
		t.Errorf("a watch of all is served by %q", got.Header().Get(ServedHeader))
	}
}

// TestMarkedRequests sends what servers send each other, and what clients might: nothing is answered in part.
func TestMarkedRequests(t *testing.T) {
	s := shared(t, ours.ShardByUID, 2)
	for _, path := range []string{allWorkloads, inPayments + "/api?resourceVersion=0", allWorkloads + "?watch=1", "/api/v1/configmaps", allWorkloads + "?shardSelector=" + url.QueryEscape(s.servers[1].options.Sharding.ownSelector())} {
		got := ask(t, s.servers[0], path, partHeader, "0")
		if got.Code != http.StatusServiceUnavailable && got.Header().Get(ServedHeader) != servedByCluster {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
}

// TestSharedQueries counts what each server has, and what is in a namespace that one of them has.
func TestSharedQueries(t *testing.T) {
	s := shared(t, ours.ShardByUID, 3)
	sum := 0
	for _, server := range s.servers {
		selector := server.options.Sharding.ownSelector()
		sum += len(s.keys(s.servers[1], QueryPath(demo, "v1", "", "workloads")+"?keys=true&shardSelector="+url.QueryEscape(selector)))
	}
	if want := len(s.list(s.cluster, nil).Object["items"].([]any)); sum != want {
		t.Errorf("queries find %d of %d objects", sum, want)
	}
	s = shared(t, ours.ShardByNamespace, 3)
	list, err := s.cluster.Client().Resource(workloads).Namespace("payments").List(t.Context(), metav1.ListOptions{})
	s.ok(err)
	for _, server := range s.servers {
		if got := s.keys(server, QueryPath(demo, "v1", "payments", "workloads")+"?keys=true"); len(got) != len(list.Items) {
			t.Errorf("a query finds %d of %d objects", len(got), len(list.Items))
		}
	}
}

// keys are those that a query finds.
func (s *sharedScene) keys(h http.Handler, path string) []string {
	s.Helper()
	var a Answer
	if got := ask(s, h, path); json.Unmarshal(got.Body.Bytes(), &a) != nil || got.Code != http.StatusOK {
		s.Fatalf("%s: %d %s", path, got.Code, got.Body)
	}
	return a.Keys
}
