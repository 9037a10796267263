package experiment

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// coldTypes are the types of BenchmarkColdGet. template has the verbs of an object's number and second.
var coldTypes = []struct {
	apitest.Type
	template string
}{
	{apitest.Type{GVR: schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1",
		Resource: "certificates"}, Kind: "Certificate", Namespaced: true},
		`{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"meta.helm.sh/release-name":"shop"},"creationTimestamp":"2026-11-20T10:%02[2]d:00Z","generation":1,"labels":{"app.kubernetes.io/instance":"object-%[1]d","app.kubernetes.io/name":"shop","team":"tenant"},"managedFields":[{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:meta.helm.sh/release-name":{}},"f:labels":{".":{},"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/name":{},"f:team":{}}},"f:spec":{".":{},"f:commonName":{},"f:dnsNames":{},"f:duration":{},"f:issuerRef":{},"f:privateKey":{},"f:renewBefore":{},"f:secretName":{},"f:usages":{}}},"manager":"helm","operation":"Update","time":"2026-11-20T10:%02[2]d:00Z"},{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}},"manager":"cert-manager-certificates-readiness","operation":"Update","subresource":"status","time":"2026-11-20T10:%02[2]d:05Z"}],"name":"object-%[1]d","namespace":"tenant"},"spec":{"commonName":"object-%[1]d.tenant.example.com","dnsNames":["object-%[1]d.tenant.example.com","www.object-%[1]d.tenant.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt-production"},"privateKey":{"algorithm":"ECDSA","rotationPolicy":"Always","size":256},"renewBefore":"720h0m0s","secretName":"object-%[1]d-tls","usages":["digital signature","key encipherment","server auth"]},"status":{"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[2]d:05Z","message":"Certificate is up to date and has not expired","observedGeneration":1,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2027-02-18T10:%02[2]d:04Z","notBefore":"2026-11-20T10:%02[2]d:04Z","renewalTime":"2027-02-03T10:%02[2]d:04Z","revision":1}}`},
	{apitest.Type{GVR: schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1",
		Resource: "workloads"}, Kind: "Workload", Namespaced: true},
		`{"apiVersion":"demo.crdcache.dev/v1","kind":"Workload","metadata":{"creationTimestamp":"2026-11-20T10:%02[2]d:00Z","finalizers":["demo.crdcache.dev/delivery"],"generation":3,"labels":{"app":"object-%[1]d","team":"payments"},"name":"object-%[1]d","namespace":"tenant"},"spec":{"environment":"staging","image":"registry.example.com/payments/object-%[1]d:1.2.3","replicas":3,"tier":"standard"},"status":{"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[2]d:05Z","message":"delivered to staging","observedGeneration":3,"reason":"Delivered","status":"True","type":"Delivered"},{"lastTransitionTime":"2026-11-20T10:%02[2]d:05Z","message":"no routes","observedGeneration":3,"reason":"NoRoutes","status":"False","type":"Routed"}],"observedGeneration":3,"phase":"Running"}}`},
}

type workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Environment string `json:"environment"`
		Image       string `json:"image"`
		Replicas    int32  `json:"replicas,omitempty"`
		Paused      bool   `json:"paused,omitempty"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration,omitempty"`
		Phase              string             `json:"phase,omitempty"`
		Conditions         []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

func (w *workload) DeepCopyObject() k8sruntime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &out
}

type workloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []workload `json:"items"`
}

func (l *workloadList) DeepCopyObject() k8sruntime.Object {
	out := *l
	out.Items = slices.Clone(l.Items) // lists are only decoded, not changed
	return &out
}

func addWorkloadToScheme(scheme *k8sruntime.Scheme) error {
	version := coldTypes[1].GVR.GroupVersion()
	scheme.AddKnownTypeWithName(version.WithKind("Workload"), &workload{})
	scheme.AddKnownTypeWithName(version.WithKind("WorkloadList"), &workloadList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}

// coldObjectsOfType is the number of objects of each type. They exceed the CPU's caches.
const coldObjectsOfType = 20_000

// BenchmarkColdGet compares a Get of controllerruntime's cache, which decodes, with one of
// controller-runtime's, which copies. It reports the CPU time of each, including garbage collection. Batches
// alternate, and the result is the median of their ratios, because the machine may have other load.
func BenchmarkColdGet(b *testing.B) {
	mapper := meta.NewDefaultRESTMapper(nil)
	var types fixedTypes
	for _, t := range coldTypes {
		types = append(types, t.Type)
		mapper.Add(t.GVR.GroupVersion().WithKind(t.Kind), meta.RESTScopeNamespace)
	}
	server := apitest.New(b, types...)
	names := make([]string, coldObjectsOfType)
	for n := range names {
		names[n] = fmt.Sprintf("object-%d", n)
		for _, t := range coldTypes {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(fmt.Appendf(nil, t.template, n, n%60)); err != nil {
				b.Fatal(err)
			}
			server.Create(b, t.GVR, u)
		}
	}
	scheme := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{certmanagerv1.AddToScheme, addWorkloadToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(certmanagerv1.SchemeGroupVersion.WithKind("Certificate"))
	objects := map[string]client.Object{"certificate": &certmanagerv1.Certificate{},
		"workload": &workload{}, "metadata": partial}
	for _, stripped := range []bool{false, true} {
		options := cache.Options{Mapper: mapper, Scheme: scheme}
		if stripped {
			options.DefaultTransform = cache.TransformStripManagedFields()
		}
		stock, err := cache.New(server.Config(), options)
		if err != nil {
			b.Fatal(err)
		}
		ours, err := controllerruntime.New(server.Config(), options, controllerruntime.Options{Types: types})
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range []cache.Cache{stock, ours} {
			go func() { _ = c.Start(b.Context()) }() // ends with the benchmark
			for _, o := range objects {
				if _, err := c.GetInformer(b.Context(), o); err != nil {
					b.Fatal(err)
				}
			}
		}
		for name, object := range objects {
			b.Run(fmt.Sprintf("%s/stripped=%t", name, stripped),
				func(b *testing.B) { measureAlternately(b, names, object, stock, ours) })
		}
	}
}

// measureAlternately measures alternating batches of reads from two caches.
func measureAlternately(b *testing.B, names []string, object client.Object, stock, ours client.Reader) {
	const batch = 3000
	var stockCosts, ourCosts, ratios []float64
	next := 0
	read := func(from client.Reader, first int) float64 {
		out := object.DeepCopyObject().(client.Object)
		before := benchmarkCPU(b)
		for k := range batch {
			// A step that visits all objects in an order without locality.
			key := client.ObjectKey{Namespace: "tenant", Name: names[(first+k)*7919%len(names)]}
			if err := from.Get(context.Background(), key, out); err != nil {
				b.Fatal(err)
			}
		}
		return float64(benchmarkCPU(b)-before) / batch
	}
	for b.Loop() {
		stockCosts, ourCosts = append(stockCosts, read(stock, next)), append(ourCosts, read(ours, next))
		ratios = append(ratios, ourCosts[len(ourCosts)-1]/stockCosts[len(stockCosts)-1])
		next += batch
	}
	b.ReportMetric(0, "ns/op") // the time of a batch is meaningless
	for unit, all := range map[string][]float64{"stock-cpu-ns/get": stockCosts, "cpu-ns/get": ourCosts,
		"times-stock": ratios} {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], unit)
	}
}

func benchmarkCPU(b *testing.B) time.Duration {
	d, err := testkit.CPUTime()
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// fixedTypes is a type source without requests.
type fixedTypes []apitest.Type

func (all fixedTypes) Subscribe(l typesource.Listener) (stop func()) {
	for _, t := range all {
		l.SetType(typesource.Type{GroupResource: t.GVR.GroupResource(), Kind: t.Kind,
			Namespaced: t.Namespaced, Versions: []string{t.GVR.Version}, Established: true})
	}
	l.SetComplete()
	return func() {}
}
