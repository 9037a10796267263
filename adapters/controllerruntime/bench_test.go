package controllerruntime

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// benchPods is the number of pods in the caches of the benchmarks.
const benchPods = 1000

// fieldsV1 is metav1.NewFieldsV1, which apimachinery has since 0.36.
func fieldsV1(text string) *metav1.FieldsV1 {
	f := &metav1.FieldsV1{}
	if err := f.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return f
}

// pod returns an object of 2 KB.
func pod(k int) *unstructured.Unstructured {
	name := fmt.Sprintf("web-%d", k)
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "web", Name: name, Labels: map[string]string{"app": "web",
				"shard": fmt.Sprint(k % 10)},
			Annotations: map[string]string{"example.com/checksum": "3b5f0ad06a4f4a459d596b8c9f7b9a10"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web",
				UID: "0f1b3c1e-7f8e-4c1a-9a57-2d1c0f5f0c11", Controller: new(true)}},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1",
				FieldsType: "FieldsV1",
				FieldsV1: fieldsV1(
					`{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:shard":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{}}},"f:dnsPolicy":{},"f:nodeName":{},"f:restartPolicy":{}}}`),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-17", RestartPolicy: "Always", DNSPolicy: "ClusterFirst",
			ServiceAccountName: "default", TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []corev1.Container{{
				Name: "web", Image: "registry.example.com/web:1.2.3", ImagePullPolicy: "IfNotPresent",
				Env:   []corev1.EnvVar{{Name: "MODE", Value: "production"}, {Name: "REGION", Value: "eu-1"}},
				Ports: []corev1.ContainerPort{{ContainerPort: 8080, Protocol: "TCP"}},
			}},
		},
		Status: corev1.PodStatus{
			Phase: "Running", PodIP: "10.1.2.3", HostIP: "10.0.0.17",
			Conditions: []corev1.PodCondition{{Type: "Ready", Status: "True"},
				{Type: "PodScheduled", Status: "True"}},
		},
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		panic(err)
	}
	return u
}

// benchCaches starts both caches with the same objects and returns them.
func benchCaches(b *testing.B) map[string]cache.Cache {
	pods := apitest.Type{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod",
		Namespaced: true}
	server := apitest.New(b, pods)
	for k := range benchPods {
		server.Create(b, pods.GVR, pod(k))
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(podKind, meta.RESTScopeNamespace)
	stock, err := cache.New(server.Config(), cache.Options{Mapper: mapper})
	if err != nil {
		b.Fatal(err)
	}
	ours, err := New(server.Config(), cache.Options{Mapper: mapper}, Options{Types: fixedTypes{pods}})
	if err != nil {
		b.Fatal(err)
	}
	start(b, stock)
	start(b, ours)
	return map[string]cache.Cache{"stock": stock, "ours": ours}
}

// emptyPods returns an empty pod in each form.
func emptyPods() map[string]client.Object {
	dynamic, partial := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	dynamic.SetGroupVersionKind(podKind)
	partial.SetGroupVersionKind(podKind)
	return map[string]client.Object{"typed": &corev1.Pod{}, "unstructured": dynamic, "metadata": partial}
}

// BenchmarkGet reads objects round-robin: cold, and hot with the decoded objects in memory.
func BenchmarkGet(b *testing.B) {
	caches := benchCaches(b)
	for form, empty := range emptyPods() {
		for name, c := range caches {
			for _, state := range []string{"cold", "hot"} {
				if state == "hot" && name == "stock" {
					continue // the first iteration prepares the state
				}
				b.Run(form+"/"+name+"/"+state, func(b *testing.B) {
					informers := awaitInformer(b, c, empty, state == "hot")
					out := empty.DeepCopyObject().(client.Object)
					b.ReportAllocs()
					k := 0
					for b.Loop() {
						k++
						if err := c.Get(context.Background(), client.ObjectKey{Namespace: "web",
							Name: podNames[k%benchPods]}, out); err != nil {
							b.Fatal(err)
						}
					}
					runtime.KeepAlive(informers)
				})
			}
		}
	}
}

// podNames are created outside the measurement.
var podNames = func() []string {
	all := make([]string, benchPods)
	for k := range all {
		all[k] = fmt.Sprintf("web-%d", k)
	}
	return all
}()

// awaitInformer waits for an informer. If holdObjects is set, it returns all shared objects, so that they
// stay decoded.
func awaitInformer(b *testing.B, c cache.Cache, object client.Object, holdObjects bool) []any {
	b.Helper()
	i, err := c.GetInformer(context.Background(), object)
	if err != nil {
		b.Fatal(err)
	}
	if !holdObjects {
		return nil
	}
	calls := make(recorder, benchPods)
	registration, err := i.AddEventHandler(calls)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = i.RemoveEventHandler(registration) }()
	held := make([]any, benchPods)
	for k := range held {
		held[k] = (<-calls).object
	}
	return held
}
