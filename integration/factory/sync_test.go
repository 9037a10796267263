package factory_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
)

func TestSyncCertManager(t *testing.T) {
	crds := harness.Read(t, harness.CertManagerCRDs(t))
	harness.InstallCRDs(t, crds...)
	harness.Apply(t, certManagerObjects(harness.Namespace(t), harness.Namespace(t))...)
	ctx, cancel := context.WithTimeout(context.Background(), patience) // t.Context ends before the cleanups
	t.Cleanup(cancel)
	factory := newFactory(t, ctx, dynamicinformer.Options{})
	var informers []*dynamicinformer.Informer
	for _, definition := range crds {
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
		i, err := factory.ForResource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
		if err != nil {
			t.Fatal(err)
		}
		informers = append(informers, i)
	}
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := factory.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	client := newClient(t, harness.Config(t))
	held := 0
	for _, i := range informers {
		expectMirror(t, client, i)
		held += len(i.GetStore().ListKeys())
		if !i.HasSynced() {
			t.Errorf("%s has not synced", i.GVR())
		}
	}
	if held != 9 {
		t.Errorf("the caches hold %d objects, want the 9 that were applied", held)
	}
}

// certManagerObjects are three certificates and an issuer in each namespace, and a cluster issuer.
func certManagerObjects(namespaces ...string) []*unstructured.Unstructured {
	issuer := func(kind, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cert-manager.io/v1", "kind": kind,
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"selfSigned": map[string]any{}},
		}}
	}
	objects := []*unstructured.Unstructured{issuer("ClusterIssuer", "root")}
	for _, ns := range namespaces {
		local := issuer("Issuer", "local")
		local.SetNamespace(ns)
		objects = append(objects, local)
		for n := range 3 {
			objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
				"metadata": map[string]any{"namespace": ns, "name": fmt.Sprintf("web-%d", n)},
				"spec": map[string]any{
					"secretName": fmt.Sprintf("web-%d-tls", n),
					"dnsNames":   []any{fmt.Sprintf("web-%d.example.org", n)},
					"issuerRef":  map[string]any{"name": "local"},
				},
				"status": map[string]any{"revision": int64(n + 1)},
			}})
		}
	}
	return objects
}

func TestLive(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{})
	s.put("before", 1)
	i, j := s.follow(s.widgets)
	j.expect("add before")
	s.sync()
	s.put("a", 1)
	j.expect("add a")
	s.put("a", 2)
	j.expect("update a")
	s.put("b", 1)
	s.delete("a")
	j.expect("add b", "delete a")
	s.expectMirror(i)
}

// TestBuiltInTypes follows types that are no custom resources, one of them the definitions themselves.
func TestBuiltInTypes(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{})
	namespaces, _ := s.follow(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	definitions, _ := s.follow(crd.GVR)
	s.sync()
	s.expectMirror(namespaces)
	s.expectMirror(definitions)
}

// TestMetadata keeps metadata alone, which lists are asked for in another way than watches.
func TestMetadata(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{Defaults: dynamicinformer.ResourceOptions{
		Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata},
	}})
	s.put("a", 1)
	i, _ := s.follow(s.widgets)
	s.sync()
	obj, found, err := i.GetIndexer().GetByKey(s.ns + "/a")
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	if u := obj.(*unstructured.Unstructured); u.GetKind() != "PartialObjectMetadata" || u.GetUID() == "" || u.Object["spec"] != nil {
		t.Errorf("the cache holds %v", u)
	}
	if s := i.Status(); s.ListDuration <= 0 {
		t.Errorf("the status is %+v", s)
	}
}

func TestOptions(t *testing.T) {
	other := harness.Namespace(t)
	for _, tc := range []struct {
		name    string
		options func(*scene) dynamicinformer.Options
		want    []string // the widgets in the cache
	}{
		{
			name: "one namespace",
			options: func(s *scene) dynamicinformer.Options {
				return dynamicinformer.Options{Defaults: dynamicinformer.ResourceOptions{Namespaces: dynamicinformer.InNamespaces(s.ns)}}
			},
			want: []string{"a", "b"},
		},
		{
			name: "a selector",
			options: func(*scene) dynamicinformer.Options {
				return dynamicinformer.Options{Defaults: dynamicinformer.ResourceOptions{
					TweakListOptions: func(_ schema.GroupVersionResource, o *metav1.ListOptions) {
						o.FieldSelector = "metadata.name!=b"
					},
				}}
			},
			want: []string{"a", "elsewhere"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t, dynamicinformer.Options{})
			s.put("a", 1)
			s.put("b", 1)
			elsewhere := s.widget("elsewhere", 1)
			elsewhere.SetNamespace(other)
			harness.Apply(t, elsewhere)
			s.factory = newFactory(t, s.ctx, tc.options(s))
			i, _ := s.follow(s.widgets)
			s.sync()
			objects, err := i.Lister().List(labels.Everything())
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, o := range objects {
				names = append(names, o.(*unstructured.Unstructured).GetName())
			}
			slices.Sort(names)
			diff(t, "widgets in the cache", tc.want, names)
			// What the server filters, it also filters in what it sends later.
			s.put("b", 2)
			s.put("c", 1)
			harness.Eventually(t, func(context.Context) error {
				if _, found, err := i.GetStore().GetByKey(s.ns + "/c"); err != nil || !found {
					return fmt.Errorf("the widget c is not there: %v", err)
				}
				return nil
			})
			diff(t, "number of widgets", len(tc.want)+1, len(i.GetStore().ListKeys()))
		})
	}
}

func TestIndexAndTransform(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{})
	s.factory = newFactory(t, s.ctx, dynamicinformer.Options{Defaults: dynamicinformer.ResourceOptions{
		Transform: dynamicinformer.StripManagedFields,
		Indexers: cache.Indexers{"size": func(obj any) ([]string, error) {
			return []string{fmt.Sprint(size(obj))}, nil
		}},
	}})
	s.put("a", 1)
	s.put("b", 2)
	i, j := s.follow(s.widgets)
	j.expect("add a", "add b")
	s.put("a", 2)
	j.expect("update a")
	objects, err := i.GetIndexer().ByIndex("size", "2")
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 2 {
		t.Errorf("%d widgets have size 2, want both", len(objects))
	}
	for _, o := range objects {
		if fields := o.(*unstructured.Unstructured).GetManagedFields(); fields != nil {
			t.Errorf("managedFields are kept: %v", fields)
		}
	}
}
