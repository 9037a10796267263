package harness

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func newClient(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func configMap(namespace, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"data":     map[string]any{"key": value},
	}}
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func TestControlPlane(t *testing.T) {
	client := newClient(t, Config(t))
	ns := Namespace(t)
	Apply(t, configMap(ns, "kept", "1"))
	value := func() (string, error) {
		o, err := client.Resource(configMaps).Namespace(ns).Get(t.Context(), "kept", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		v, _, err := unstructured.NestedString(o.Object, "data", "key")
		return v, err
	}
	wantKept := func(t *testing.T) {
		t.Helper()
		if got, err := value(); err != nil || got != "1" {
			t.Errorf("the object is %q, %v; want what was applied", got, err)
		}
	}

	t.Run("the admin may", func(t *testing.T) { wantKept(t) })
	t.Run("the unprivileged may not", func(t *testing.T) {
		_, err := newClient(t, UnprivilegedConfig(t)).Resource(configMaps).Namespace(ns).List(t.Context(),
			metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("listing: %v, want forbidden", err)
		}
	})
	t.Run("the unprivileged may discover", func(t *testing.T) {
		client, err := rest.UnversionedRESTClientFor(unversioned(UnprivilegedConfig(t)))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Get().AbsPath("/apis").Do(t.Context()).Error(); err != nil {
			t.Error(err)
		}
	})
	t.Run("kill", func(t *testing.T) {
		KillAPIServer(t)
		if _, err := value(); !utilnet.IsConnectionRefused(err) {
			t.Errorf("request to a killed server: %v, want a refused connection", err)
		}
		RestartAPIServer(t)
		wantKept(t)
		KillAPIServer(t) // the cleanup restarts the server
	})
	t.Run("killed server is back", func(t *testing.T) { wantKept(t) })
}

func TestCRDs(t *testing.T) {
	group := Group(t)
	gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	c := newClients(t)
	ns := Namespace(t)

	t.Run("installed", func(t *testing.T) {
		InstallCRDs(t, NewCRD(group, "Widget"))
		if known, err := c.isDiscovered(gvr); err != nil || !known {
			t.Errorf("discovered: %t, %v; want true", known, err)
		}
		Apply(t, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "Widget",
			"metadata": map[string]any{"namespace": ns, "name": "held",
				"finalizers": []any{"crdcache.test/hold"}},
			"status": map[string]any{"phase": "Ready"},
		}})
		o, err := c.dynamic.Resource(gvr).Namespace(ns).Get(t.Context(), "held", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase != "Ready" {
			t.Errorf("status.phase is %q, want what was applied", phase)
		}
	})
	t.Run("gone", func(t *testing.T) {
		if known, err := c.isDiscovered(gvr); err != nil || known {
			t.Errorf("discovered: %t, %v; want false", known, err)
		}
		if _, err := c.dynamic.Resource(gvr).List(t.Context(),
			metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("listing: %v, want not found", err)
		}
	})
}

// TestHiddenObjects deletes a definition. Its last object has a finalizer and a deleted namespace.
func TestHiddenObjects(t *testing.T) {
	group := Group(t)
	gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	c := newClients(t)
	t.Run("installed", func(t *testing.T) {
		InstallCRDs(t, NewCRD(group, "Widget"))
		held := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "Widget",
			"metadata": map[string]any{"name": "held", "finalizers": []any{"crdcache.test/hold"}},
		}}
		if _, err := c.dynamic.Resource(gvr).Namespace(Namespace(t)).Create(t.Context(), held,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := c.dynamic.Resource(crdResource).Get(t.Context(), "widgets."+group,
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the definition: %v, want not found", err)
	}
}

// TestStatusSubresource applies a status that the main endpoint ignores.
func TestStatusSubresource(t *testing.T) {
	group, ns := Group(t), Namespace(t)
	crd := NewCRD(group, "Widget")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	versions[0].(map[string]any)["subresources"] = map[string]any{"status": map[string]any{}}
	if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	InstallCRDs(t, crd)
	Apply(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": ns, "name": "w"},
		"spec":     map[string]any{"size": int64(1)},
		"status":   map[string]any{"phase": "Ready"},
	}})
	if got := Kubectl(t, "get", "widgets."+group, "-n", ns, "w", "-o",
		"jsonpath={.status.phase}"); got != "Ready" {
		t.Errorf("status.phase is %q, want Ready", got)
	}
}

func TestNamespaceIsRemoved(t *testing.T) {
	client := newClient(t, Config(t))
	var name string
	t.Run("made", func(t *testing.T) {
		name = Namespace(t)
		if _, err := client.Resource(namespaceResource).Get(t.Context(), name,
			metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := client.Resource(namespaceResource).Get(t.Context(), name,
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the test: %v, want not found", err)
	}
}

func TestCertManagerCRDs(t *testing.T) {
	crds := ReadManifests(t, CertManagerCRDs(t))
	if len(crds) != 6 {
		t.Errorf("there are %d definitions, want 6", len(crds))
	}
	InstallCRDs(t, crds...)
}

func TestAwaitEstablishedFailsForRefusedNames(t *testing.T) {
	group := Group(t)
	InstallCRDs(t, NewCRD(group, "Widget"))
	rival := NewCRD(group, "Widget")
	rival.SetName("gadgets." + group)
	if err := unstructured.SetNestedField(rival.Object, "gadgets", "spec", "names", "plural"); err != nil {
		t.Fatal(err)
	}
	c := newClients(t)
	t.Cleanup(func() { removeCRD(t, c, rival.GetName()) })
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	if err := c.apply(ctx, crdResource, rival); err != nil {
		t.Fatal(err)
	}
	if err := c.awaitServed(ctx, rival); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a kind that another definition has: %v, want an error that says so", err)
	}
}

func TestCounting(t *testing.T) {
	config, requests := Counting(Config(t))
	client := newClient(t, config)
	for range 2 {
		if _, err := client.Resource(configMaps).Namespace("default").List(t.Context(),
			metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w, err := client.Resource(configMaps).Namespace("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	const path = "/api/v1/namespaces/default/configmaps"
	if got := requests.Count("GET", path); got != 2 {
		t.Errorf("GET was counted %d times, want 2", got)
	}
	if got := requests.Count("WATCH", path); got != 1 {
		t.Errorf("WATCH was counted %d times, want 1", got)
	}
	if got := requests.All(); len(got) != 2 {
		t.Errorf("all requests are %v, want two kinds", got)
	}
	requests.Reset()
	if got := requests.All(); len(got) != 0 {
		t.Errorf("All() after Reset = %v, want none", got)
	}
}

func TestKubectl(t *testing.T) {
	ns := Namespace(t)
	if got, want := Kubectl(t, "get", "namespace", ns, "-o", "name"), "namespace/"+ns+"\n"; got != want {
		t.Errorf("kubectl printed %q, want %q", got, want)
	}
}
