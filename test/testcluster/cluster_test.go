package testcluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"

	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/test/testcluster"
)

func TestMain(m *testing.M) {
	os.Exit(testkit.Main(m, "crdcache/serving/readapi", "crdcache/test/testcluster."))
}

func newCluster(t *testing.T, options testcluster.Options) *testcluster.Cluster {
	t.Helper()
	cluster, err := testcluster.New(t.Context(), options)
	noError(t, err)
	return cluster
}

// newClientset returns client-go's typed clients.
func newClientset(t *testing.T, c *testcluster.Cluster) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c.Config())
	noError(t, err)
	return clients
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestClients verifies that typed, metadata and dynamic clients see the same objects, and discovery maps
// their kinds.
func TestClients(t *testing.T) {
	ctx := t.Context()
	cluster := newCluster(t, testcluster.Options{FS: files, Paths: []string{"crds"}})
	typed := newClientset(t, cluster)
	created, err := typed.CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
	if err != nil || created.UID == "" || created.Generation != 0 || created.Data["k"] != "v" {
		t.Fatalf("Create() = %v, %v", created, err)
	}
	created.ResourceVersion = "" // built-in types allow an update without a resource version
	if _, err := typed.CoreV1().ConfigMaps("default").Update(ctx, created,
		metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	bare, err := metadata.NewForConfig(cluster.Config())
	noError(t, err)
	partial, err := bare.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default").
		Get(ctx, "a", metav1.GetOptions{})
	if err != nil || partial.UID != created.UID {
		t.Errorf("Get() of metadata = %v, %v, want the UID of the created object", partial, err)
	}
	groups, err := restmapper.GetAPIGroupResources(typed.Discovery())
	noError(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for kind, want := range map[schema.GroupKind]string{
		{Group: "apps", Kind: "Deployment"}: "deployments", {Kind: "Pod"}: "pods", {Group: "example.com",
			Kind: "Widget"}: "widgets",
	} {
		if mapping, err := mapper.RESTMapping(kind); err != nil || mapping.Resource.Resource != want {
			t.Errorf("RESTMapping(%v) = %v, %v, want %s", kind, mapping, err, want)
		}
	}
}

// TestStrategicMergePatch verifies that lists are merged according to the Go type. Without a Go type, the
// error names a remedy.
func TestStrategicMergePatch(t *testing.T) {
	ctx := t.Context()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "1"},
			{Name: "y", Image: "1"}}}}
	cluster := newCluster(t, testcluster.Options{Scheme: clientscheme.Scheme, Objects: []runtime.Object{pod},
		FS: files, Paths: []string{"crds"}})
	const patch = `{"spec":{"containers":[{"name":"y","image":"2"}]}}`
	got, err := newClientset(t, cluster).CoreV1().Pods("default").Patch(ctx, "a",
		types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	noError(t, err)
	images := map[string]string{}
	for _, c := range got.Spec.Containers {
		images[c.Name] = c.Image
	}
	if diff := cmp.Diff(map[string]string{"x": "1", "y": "2"}, images); diff != "" || got.Generation != 2 {
		t.Errorf("generation %d (-want +got):\n%s", got.Generation, diff)
	}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	for name, tt := range map[string]struct {
		cluster *testcluster.Cluster
		gvr     schema.GroupVersionResource
		want    string
	}{
		"no scheme": {newCluster(t, testcluster.Options{}), pods, "give the cluster a scheme"},
		"another scheme": {newCluster(t, testcluster.Options{Scheme: runtime.NewScheme()}), pods,
			"add the type to the scheme"},
		"custom resource": {cluster, widgets, "accepted media types include"},
	} {
		object := newWidget("a")
		if tt.gvr == pods {
			object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
				"metadata": map[string]any{"name": "a"}}}
		}
		object.SetNamespace("default")
		noError(t, tt.cluster.Load(ctx, object))
		_, err := tt.cluster.Client().Resource(tt.gvr).Namespace("default").Patch(ctx, "a",
			types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
		if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnsupportedMediaType ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want UnsupportedMediaType with a remedy", name, err)
		}
	}
}

// TestRefusals verifies that unsupported requests are rejected, and that the error names a remedy.
func TestRefusals(t *testing.T) {
	ctx := t.Context()
	cluster := newCluster(t, testcluster.Options{FS: files, Paths: []string{"crds"}})
	client := cluster.Client()
	hook := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": "a"},
	}}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	hooks := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingwebhookconfigurations"}
	for name, err := range map[string]error{
		"apply": func() error {
			_, err := client.Resource(widgets).Namespace("default").Apply(ctx, "a", newWidget("a"),
				metav1.ApplyOptions{FieldManager: "m"})
			return err
		}(),
		"scale": func() error {
			_, err := client.Resource(deployments).Namespace("default").Get(ctx, "a",
				metav1.GetOptions{}, "scale")
			return err
		}(),
		"webhook": func() error {
			_, err := client.Resource(hooks).Create(ctx, hook, metav1.CreateOptions{})
			return err
		}(),
		"load": cluster.Load(ctx, hook),
	} {
		if err == nil || !strings.Contains(err.Error(), "envtest") {
			t.Errorf("%s: error %v, want one that names envtest", name, err)
		}
	}
	if list, err := client.Resource(hooks).List(ctx, metav1.ListOptions{}); err != nil ||
		len(list.Items) != 0 {
		t.Errorf("List() = %v, %v, want no items", list, err)
	}
	config := cluster.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	clients, err := kubernetes.NewForConfig(config)
	noError(t, err)
	if _, err := clients.CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err == nil {
		t.Error("a request in protobuf succeeded, want an error")
	}
}

// TestNamespaces verifies that an object needs its namespace. Deleting the namespace deletes the object,
// after its finalizers are removed.
func TestNamespaces(t *testing.T) {
	ctx := t.Context()
	cluster := newCluster(t, testcluster.Options{FS: files, Paths: []string{"crds"}})
	namespaces := newClientset(t, cluster).CoreV1().Namespaces()
	client := cluster.Client().Resource(widgets).Namespace("web")
	if _, err := client.Create(ctx, newWidget("a"), metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("Create() without the namespace = %v, want NotFound", err)
	}
	created, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
		metav1.CreateOptions{})
	if err != nil || created.Status.Phase != corev1.NamespaceActive ||
		created.Labels["kubernetes.io/metadata.name"] != "web" {
		t.Fatalf("Create() of a namespace = %v, %v", created, err)
	}
	kept := newWidget("kept")
	kept.SetFinalizers([]string{"example.com/f"})
	for _, w := range []*unstructured.Unstructured{newWidget("a"), kept} {
		if _, err := client.Create(ctx, w, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	namespaceWatch, err := namespaces.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=web",
		ResourceVersion: created.ResourceVersion})
	noError(t, err)
	defer namespaceWatch.Stop()
	noError(t, namespaces.Delete(ctx, "web", metav1.DeleteOptions{}))
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetDeletionTimestamp() == nil {
		t.Errorf("the remaining objects are %v, %v, want one terminating object", list, err)
	}
	if _, err := client.Create(ctx, newWidget("b"), metav1.CreateOptions{}); !apierrors.HasStatusCause(err,
		corev1.NamespaceTerminatingCause) {
		t.Errorf("Create() in a terminating namespace = %v, want an error", err)
	}
	if _, err := client.Patch(ctx, "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := namespaces.Get(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("Get() of the namespace after its last object was removed = %v, want NotFound", err)
	}
	for _, want := range []watch.EventType{watch.Modified, watch.Deleted} {
		if event := <-namespaceWatch.ResultChan(); event.Type != want {
			t.Errorf("the watch sends %s, want %s", event.Type, want)
		}
	}
	if err := namespaces.Delete(ctx, "default", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("Delete() of the namespace default = %v, want Forbidden", err)
	}
}

// TestDefinitions verifies that a type is served as soon as a client has created its definition. Deleting the
// definition deletes the type and its objects.
func TestDefinitions(t *testing.T) {
	ctx := t.Context()
	source := newCluster(t, testcluster.Options{FS: files, Paths: []string{"crds"}})
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	definition, err := source.Client().Resource(crds).Get(ctx, "widgets.example.com", metav1.GetOptions{})
	noError(t, err)
	definition.SetResourceVersion("")
	cluster := newCluster(t, testcluster.Options{})
	client := cluster.Client()
	created, err := client.Resource(crds).Create(ctx, definition, metav1.CreateOptions{})
	noError(t, err)
	conditions, _, _ := unstructured.NestedSlice(created.Object, "status", "conditions")
	if len(conditions) != 2 || conditions[1].(map[string]any)["type"] != "Established" {
		t.Errorf("the conditions are %v, want Established", conditions)
	}
	kept := newWidget("kept")
	kept.SetFinalizers([]string{"example.com/f"})
	for _, w := range []*unstructured.Unstructured{newWidget("a"), kept} {
		if _, err := client.Resource(widgets).Namespace("default").Create(ctx, w,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	noError(t, client.Resource(crds).Delete(ctx, "widgets.example.com", metav1.DeleteOptions{}))
	if _, err := client.Resource(widgets).Namespace("default").Create(ctx, newWidget("b"),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("Create() of a terminating type = %v, want Forbidden", err)
	}
	list, err := client.Resource(widgets).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "kept" {
		t.Errorf("the remaining objects are %v, %v, want kept", list, err)
	}
	if _, err := client.Resource(widgets).Namespace("default").Patch(ctx, "kept", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(crds).Get(ctx, "widgets.example.com",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("Get() of the deleted definition = %v, want NotFound", err)
	}
	if _, err := client.Resource(widgets).List(ctx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("List() of the deleted type = %v, want NotFound", err)
	}
	if _, err := client.Resource(crds).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		t.Errorf("Create() of the deleted definition: %v", err)
	}
}

// TestLoad verifies that objects are loaded from files in any order, and from Go values with their status.
// Errors name the object.
func TestLoad(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: web}, spec: {unknown: 1}, status: {ready: true}}",
		"b.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: web}}",
		"z.yaml": string(files["crds/widgets.yaml"].Data), "notes.txt": "no manifest",
	} {
		noError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	created := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "web",
		CreationTimestamp: metav1.NewTime(created), UID: "mine"}}
	cluster := newCluster(t, testcluster.Options{Paths: []string{dir}, Scheme: clientscheme.Scheme,
		Objects: []runtime.Object{&corev1.SecretList{Items: []corev1.Secret{*secret}}}})
	widget, err := cluster.Client().Resource(widgets).Namespace("web").Get(ctx, "a", metav1.GetOptions{})
	noError(t, err)
	got := map[string]any{"spec": widget.Object["spec"], "status": widget.Object["status"],
		"generation": widget.GetGeneration(), "uid": widget.GetUID() != ""}
	want := map[string]any{"spec": map[string]any{"replicas": int64(1)},
		"status": map[string]any{"ready": true}, "generation": int64(1), "uid": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loaded objects (-want +got):\n%s", diff)
	}
	loaded, err := newClientset(t, cluster).CoreV1().Secrets("web").Get(ctx, "s", metav1.GetOptions{})
	if err != nil || loaded.UID != "mine" || !loaded.CreationTimestamp.Time.Equal(created) ||
		loaded.Generation != 0 {
		t.Errorf("the loaded object is %v, %v, want its own UID and creation time", loaded, err)
	}

	emptyCluster := newCluster(t, testcluster.Options{})
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"typed": {emptyCluster.Load(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}),
			"object 1: a *v1.Secret without apiVersion and kind: set its TypeMeta, or Options.Scheme"},
		"nothing":       {emptyCluster.Load(ctx, nil), "object 1: the object is nil"},
		"no file":       {emptyCluster.LoadFiles(ctx, filepath.Join(dir, "none.yaml")), "no such file"},
		"no FS file":    {emptyCluster.LoadFS(ctx, fstest.MapFS{}, "none.yaml"), "open none.yaml"},
		"empty path":    {emptyCluster.LoadFiles(ctx, ""), "a path is empty"},
		"empty FS path": {emptyCluster.LoadFS(ctx, fstest.MapFS{"x.yaml": {}}, ""), "a path is empty"},
		"stdin":         {emptyCluster.LoadFiles(ctx, "-"), "standard input is not available"},
		"file -":        {emptyCluster.LoadFS(ctx, fstest.MapFS{"-": {Data: []byte("a: [")}}, "-"), "-:1:"},
		"no FS paths":   {emptyCluster.LoadFS(ctx, fstest.MapFS{"d/x.yaml": {Data: []byte("a: [")}}), "d/x.yaml"},
		"whole FS":      {emptyCluster.LoadFS(ctx, fstest.MapFS{"d/x.yaml": {Data: []byte("a: [")}}, "."), "d/x.yaml"},
		"empty": {emptyCluster.LoadFS(ctx, fstest.MapFS{"d/x.txt": {}}, "d"),
			"d: the directory has no YAML or JSON files"},
		"broken": {emptyCluster.LoadFS(ctx, fstest.MapFS{"x.yaml": {Data: []byte("a: [")}}, "x.yaml"), "x.yaml"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", name, tt.err, tt.want)
		}
	}
}
