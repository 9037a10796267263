package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestReducedObjectsAreRejected verifies that an API server rejects updates with objects of which the cache
// has only some fields, from the default client of a manager: of built-in types and custom resources.
// NewClient rejects updates of their status, too. Patches change only their fields.
func TestReducedObjectsAreRejected(t *testing.T) {
	namespace, group := harness.Namespace(t), harness.Group(t)
	crd := harness.NewCRD(group, "Gauge")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	versions[0].(map[string]any)["subresources"] = map[string]any{"status": map[string]any{}}
	must(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	harness.InstallCRDs(t, crd)
	gauge := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Gauge"}}
		u.SetNamespace(namespace)
		u.SetName("a")
		return u
	}
	whole := gauge()
	whole.Object["spec"] = map[string]any{"kept": "k", "dropped": "d"}
	whole.Object["status"] = map[string]any{"kept": "k", "dropped": "d"}
	settings := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"data": map[string]any{"kept": "k", "dropped": "d"}}}
	settings.SetNamespace(namespace)
	settings.SetName("a")
	harness.Apply(t, whole, settings)

	c, config := startCacheWith(t, controllerruntime.Options{ReducedGet: controllerruntime.GetReduced,
		Keep: dynamicinformer.Keep{Paths: []string{".spec.kept", ".status.kept", ".data.kept"}}})
	plain, err := client.New(config,
		client.Options{Cache: &client.CacheOptions{Reader: c, Unstructured: true}})
	must(t, err)
	guarded, err := controllerruntime.NewClient(config,
		client.Options{Cache: &client.CacheOptions{Reader: c, Unstructured: true}})
	must(t, err)
	live, err := client.New(config, client.Options{})
	must(t, err)
	content := func(o client.Object) string {
		t.Helper()
		must(t, live.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		must(t, err)
		return fmt.Sprint(fields["spec"], fields["status"], fields["data"])
	}
	typed := &corev1.ConfigMap{}
	typed.Namespace, typed.Name = namespace, "a"
	for _, object := range []client.Object{gauge(), typed} {
		before := content(object.DeepCopyObject().(client.Object))
		must(t, plain.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		if !controllerruntime.IsReduced(object) {
			t.Fatalf("%v is not reduced", object)
		}
		err := plain.Update(t.Context(), object.DeepCopyObject().(client.Object))
		if !apierrors.IsInvalid(err) {
			t.Errorf("Update() of a reduced %T = %v, want Invalid", object, err)
		}
		if _, ok := object.(*unstructured.Unstructured); ok { // the server ignores annotations here
			err := guarded.Status().Update(t.Context(), object.DeepCopyObject().(client.Object))
			var reduced *controllerruntime.ReducedError
			if !errors.As(err, &reduced) {
				t.Errorf("Update() of the status of a reduced object = %v, want a ReducedError", err)
			}
		}
		patched := object.DeepCopyObject().(client.Object)
		patched.SetLabels(map[string]string{"patched": "yes"})
		if err := plain.Patch(t.Context(), patched, client.MergeFrom(object)); err != nil {
			t.Errorf("Patch() of a reduced %T = %v, want no error", object, err)
		}
		if after := content(object.DeepCopyObject().(client.Object)); after != before {
			t.Errorf("%T has changed from %s to %s", object, before, after)
		}
	}
}

// TestStrategicPatches verifies that strategic merge patches of a reduced Deployment add, change, order and
// remove elements of a merged list without a loss of dropped fields, and are rejected if they replace a value
// that lacks some.
func TestStrategicPatches(t *testing.T) {
	namespace := harness.Namespace(t)
	c, config := startCacheWith(t, controllerruntime.Options{ReducedGet: controllerruntime.GetReduced,
		Keep: dynamicinformer.Keep{Paths: []string{".spec.template.spec.containers[*].name",
			".spec.template.spec.containers[*].image", ".spec.template.spec.volumes[*].name",
			".spec.strategy.type", ".spec.template.spec.tolerations[*].key"}}})
	guarded, err := controllerruntime.NewClient(config,
		client.Options{Cache: &client.CacheOptions{Reader: c}})
	must(t, err)
	live, err := client.New(config, client.Options{})
	must(t, err)
	app := map[string]string{"app": "a"}
	newDeployment := func(name string) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Namespace, d.Name = namespace, name
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: app}
		d.Spec.Template.Labels = app
		d.Spec.Template.Spec = corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v"}},
			Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}}
		for _, name := range []string{"a", "b"} {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers,
				corev1.Container{Name: name, Image: "image:1", Args: []string{"dropped"}})
		}
		return d
	}
	type change = func(*corev1.PodSpec, *appsv1.DeploymentStrategy)
	for name, test := range map[string]struct {
		change change
		// want describes the containers; empty if the patch is rejected.
		want string
	}{
		"change": {func(s *corev1.PodSpec, _ *appsv1.DeploymentStrategy) {
			s.Containers[1].Image = "image:2"
		}, "a image:1 [dropped], b image:2 [dropped]"},
		"order": {func(s *corev1.PodSpec, _ *appsv1.DeploymentStrategy) {
			s.Containers[0], s.Containers[1] = s.Containers[1], s.Containers[0]
		}, "b image:1 [dropped], a image:1 [dropped]"},
		"add": {func(s *corev1.PodSpec, _ *appsv1.DeploymentStrategy) {
			s.Containers = append(s.Containers, corev1.Container{Name: "c", Image: "image:3"})
		}, "a image:1 [dropped], b image:1 [dropped], c image:3 []"},
		"remove": {func(s *corev1.PodSpec, _ *appsv1.DeploymentStrategy) { s.Containers = s.Containers[1:] },
			"b image:1 [dropped]"},
		"remove all": {func(s *corev1.PodSpec, _ *appsv1.DeploymentStrategy) { s.Volumes = nil },
			"a image:1 [dropped], b image:1 [dropped]"},
		"replace a list": {func(s *corev1.PodSpec, _ *appsv1.DeploymentStrategy) {
			s.Tolerations[0].Key = "l"
		}, ""},
		"replace a list of an element": {func(s *corev1.PodSpec, _ *appsv1.DeploymentStrategy) {
			s.Containers[1].Args = []string{"new"}
		}, ""},
		"retain keys": {func(_ *corev1.PodSpec, s *appsv1.DeploymentStrategy) { s.Type = "Recreate" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			whole := newDeployment(strings.ReplaceAll(name, " ", "-"))
			must(t, live.Create(t.Context(), whole))
			d := &appsv1.Deployment{}
			harness.Eventually(t, func(ctx context.Context) error {
				return guarded.Get(ctx, client.ObjectKeyFromObject(whole), d)
			})
			before := d.DeepCopy()
			test.change(&d.Spec.Template.Spec, &d.Spec.Strategy)
			var reduced *controllerruntime.ReducedError
			err := guarded.Patch(t.Context(), d, client.StrategicMergeFrom(before))
			if errors.As(err, &reduced) != (test.want == "") || err != nil && test.want != "" {
				t.Errorf("Patch() = %v, want a ReducedError: %v", err, test.want == "")
			}
			after := &appsv1.Deployment{}
			must(t, live.Get(t.Context(), client.ObjectKeyFromObject(whole), after))
			if test.want == "" {
				if diff := cmp.Diff(whole.Spec, after.Spec); diff != "" {
					t.Errorf("the rejected patch changed the spec (-before +after):\n%s", diff)
				}
				return
			}
			var containers []string
			for _, c := range after.Spec.Template.Spec.Containers {
				containers = append(containers, fmt.Sprint(c.Name, " ", c.Image, " ", c.Args))
			}
			if got := strings.Join(containers, ", "); got != test.want {
				t.Errorf("the containers are %s, want %s", got, test.want)
			}
		})
	}
}
