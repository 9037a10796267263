package dynamicinformer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	stock "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/newer"
	"github.com/crdcache/crdcache/internal/testkit"
)

// benchCertificate is a custom resource of 2 KB as an API server sends it; nearly half of it is managed
// fields.
func benchCertificate(n, version int) []byte {
	return fmt.Appendf(
		nil, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"cert-manager.io/issue-temporary-certificate":"true","example.com/owner":"team-%[2]d@example.com","team":"team-%[2]d"},"creationTimestamp":"2026-11-20T10:%02[3]d:00Z","generation":1,"labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"app-%[2]d","env":"prod"},"managedFields":[{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:cert-manager.io/issue-temporary-certificate":{},"f:team":{}},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:env":{}}},"f:spec":{".":{},"f:dnsNames":{},"f:issuerRef":{},"f:secretName":{}}},"manager":"helm","operation":"Update","time":"2026-11-20T10:%02[3]d:00Z"},{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}},"manager":"cert-manager-certificates-readiness","operation":"Update","subresource":"status","time":"2026-11-20T10:%02[3]d:05Z"}],"name":"certificate-%[1]d","namespace":"tenant-%[2]d","resourceVersion":"%[4]d","uid":"5f0c1c6e-7d21-4a8e-9d0b-%012[1]d"},"spec":{"dnsNames":["host-%[1]d.tenant-%[2]d.apps.example.com","www.host-%[1]d.tenant-%[2]d.apps.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt"},"privateKey":{"algorithm":"ECDSA","rotationPolicy":"Always","size":256},"renewBefore":"360h0m0s","secretName":"tls-%[1]d","usages":["digital signature","key encipherment"]},"status":{"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[3]d:05Z","message":"Certificate is up to date and has not expired","observedGeneration":1,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2027-02-18T10:%02[3]d:04Z","notBefore":"2026-11-20T10:%02[3]d:04Z","renewalTime":"2027-02-03T10:%02[3]d:04Z","revision":1}}`,
		n, n%100, n%60, version)
}

// eventSource is an API server with objects. On request it sends updates as fast as the client reads them.
type eventSource struct {
	objects int
	updates chan int // how many to send
}

func (s *eventSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	flush := w.(http.Flusher).Flush
	switch {
	case r.URL.Query().Get("sendInitialEvents") != "": // as servers without watch-lists do
		w.WriteHeader(http.StatusUnprocessableEntity)
	case r.URL.Query().Get("watch") != "":
		flush()
		for version := 2; ; {
			select {
			case <-r.Context().Done():
				return
			case count := <-s.updates:
				for n := range count {
					fmt.Fprintf(w, "{\"type\":\"MODIFIED\",\"object\":%s}\n",
						benchCertificate(n%s.objects, version))
					version++
				}
				flush()
			}
		}
	default:
		fmt.Fprint(
			w, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"1"},"items":[`)
		for n := range s.objects {
			if n > 0 {
				fmt.Fprint(w, ",")
			}
			w.Write(benchCertificate(n, 1))
		}
		fmt.Fprint(w, "]}")
	}
}

// cpu returns the processor time of the process.
func cpu(b *testing.B) time.Duration {
	used, err := testkit.CPUTime()
	if err != nil {
		b.Fatal(err)
	}
	return used
}

// BenchmarkUpdates measures the processor time of an update, from the server's bytes to a handler, including
// the server's small share: for handlers that use the key, and for handlers that read a field of the new
// object.
func BenchmarkUpdates(b *testing.B) {
	const objects = 2000
	keys := func(obj any) bool { _, err := cache.MetaNamespaceKeyFunc(obj); return err == nil }
	fields := func(obj any) bool {
		name, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "secretName")
		return name != ""
	}
	ours := func(resource ResourceOptions) func(*rest.Config) cache.SharedIndexInformer {
		return func(config *rest.Config) cache.SharedIndexInformer {
			f, err := New(Options{Config: config, Defaults: resource})
			if err != nil {
				b.Fatal(err)
			}
			return mustInformer(b, f, widgets)
		}
	}
	pruned := ResourceOptions{Prune: Prune{Presets: []PrunePreset{PruneManagedFields}}}
	theirs := func(config *rest.Config) cache.SharedIndexInformer {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			b.Fatal(err)
		}
		return stock.NewDynamicSharedInformerFactory(client, 0).ForResource(widgets).Informer()
	}
	for _, bench := range []struct {
		name      string
		make      func(*rest.Config) cache.SharedIndexInformer
		use       func(any) bool
		undecoded bool
	}{
		{"keys/client-go", theirs, keys, false},
		{"keys/packed", ours(ResourceOptions{}), keys, true},
		{"keys/packed and pruned", ours(pruned), keys, true},
		{"fields/client-go", theirs, fields, false},
		{"fields/packed", ours(ResourceOptions{}), fields, false},
		{"fields/packed and pruned", ours(pruned), fields, false},
		{"fields/object", ours(ResourceOptions{Storage: Storage{Mode: StorageObject}}), fields, false},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			source := &eventSource{objects: objects, updates: make(chan int)}
			server := httptest.NewServer(source)
			defer server.Close()
			informer := bench.make(&rest.Config{Host: server.URL})
			var seen atomic.Int64
			done := make(chan struct{}, 1)
			var handler cache.ResourceEventHandler = cache.ResourceEventHandlerFuncs{UpdateFunc: func(_,
				obj any) {
				if !bench.use(obj) {
					b.Error("not what was expected")
				}
				if seen.Add(1) == int64(b.N) {
					done <- struct{}{}
				}
			}}
			if bench.undecoded {
				handler = EveryEvent(MetadataOnly(handler))
			}
			handle, err := informer.AddEventHandler(handler)
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan struct{})
			go func() { // ended by cancel
				defer close(ended)
				informer.RunWithContext(ctx)
			}()
			<-newer.Done(handle, nil)
			before := cpu(b)
			b.ResetTimer()
			source.updates <- b.N
			<-done
			b.StopTimer()
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/event")
			cancel()
			<-ended
		})
	}
}
