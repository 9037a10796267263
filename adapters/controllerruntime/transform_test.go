package controllerruntime

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// TestForeignTransforms verifies that as in the stock cache, reading an object that a transform converted to
// another type fails.
func TestForeignTransforms(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"))
	c := newCache(t, server, cache.Options{DefaultTransform: func(in any) (any, error) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a"}}, nil
	}}, Options{})
	start(t, c)
	for name, form := range emptyForms() {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, form); err == nil {
			t.Errorf("%s: Get() of an object that is not a ConfigMap succeeded, want an error", name)
		}
	}
}

// addressList has fields that need encoding.TextUnmarshaler, and a small integer type.
type addressList struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Addresses         []netip.Addr `json:"addresses,omitempty"`
	IP                net.IP       `json:"ip,omitempty"`
	Small             int8         `json:"small,omitempty"`
}

func (a *addressList) DeepCopyObject() runtime.Object {
	out := *a
	a.DeepCopyInto(&out.ObjectMeta)
	out.Addresses, out.IP = slices.Clone(a.Addresses), slices.Clone(a.IP)
	return &out
}

// TestConvertedIsDecoded verifies that transformed objects, and objects that are stored decoded, become the
// same structs as from JSON.
func TestConvertedIsDecoded(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(widgetKind, &addressList{})
	server := newServer(t)
	fits, large := object(widgetKind, "web", "fits"), object(widgetKind, "web", "large")
	fits.Object["addresses"], fits.Object["ip"], fits.Object["small"] = []any{"10.0.0.1",
		"::1"}, "10.0.0.2", int64(7)
	large.Object["small"] = int64(300)
	server.Create(t, widgets, fits, large)
	for name, tt := range map[string]struct {
		options      cache.Options
		cacheOptions Options
	}{
		"packed": {cache.Options{}, Options{}},
		"transformed": {cache.Options{DefaultTransform: func(in any) (any, error) { return in, nil }},
			Options{}},
		"decoded": {cache.Options{},
			Options{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageObject}}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.options.Scheme = scheme
			c := newCache(t, server, tt.options, tt.cacheOptions)
			start(t, c)
			var got addressList
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(fits), &got); err != nil ||
				fmt.Sprint(got.Addresses, got.IP, got.Small) != "[10.0.0.1 ::1] 10.0.0.2 7" {
				t.Errorf("Get() = %v with %v, %v, %d; want [10.0.0.1 ::1], 10.0.0.2, 7", err, got.Addresses,
					got.IP, got.Small)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(large), &got); err == nil ||
				!strings.Contains(err.Error(), "web/large does not fit") {
				t.Errorf("Get() of an object that does not fit = %[2]v with the value %[1]d, want an error",
					got.Small, err)
			}
		})
	}
}

// TestStripManagedFieldsIsPruning checks that only controller-runtime's transform is replaced by pruning.
func TestStripManagedFieldsIsPruning(t *testing.T) {
	if !convert.StripsManagedFields(cache.TransformStripManagedFields()) {
		t.Error("TransformStripManagedFields is not recognized")
	}
	if convert.StripsManagedFields(dynamicinformer.StripManagedFields) ||
		convert.StripsManagedFields(func(in any) (any, error) { return in, nil }) {
		t.Error("another transform is recognized as TransformStripManagedFields")
	}
	server := newServer(t)
	u := configMap("web", "a")
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "test", Operation: "Update",
		FieldsType: "FieldsV1", FieldsV1: fieldsV1(`{}`)}})
	server.Create(t, configMaps, u)
	c := newCache(t, server, cache.Options{DefaultTransform: cache.TransformStripManagedFields()}, Options{})
	start(t, c)
	for name, form := range emptyForms() {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, form); err != nil ||
			len(form.GetManagedFields()) != 0 {
			t.Errorf("%s: Get() = %v with the managed fields %v, want none", name, err,
				form.GetManagedFields())
		}
	}
	if options := c.Factory().Stats()[0].Options; options != "pruned; storage: adaptive" &&
		options != "pruned; storage: metadata" {
		t.Errorf("Options = %q, want pruned", options)
	}
}

// TestTransformsGetTheirForm verifies that as in the stock cache, transforms receive objects of the readers'
// form.
func TestTransformsGetTheirForm(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a", "key", "value"))
	c := newCache(t, server, cache.Options{DefaultTransform: func(in any) (any, error) {
		form := "unknown"
		switch in.(type) {
		case *corev1.ConfigMap:
			form = "typed"
		case *unstructured.Unstructured:
			form = "unstructured"
		case *metav1.PartialObjectMetadata:
			form = "metadata"
		}
		in.(client.Object).SetLabels(map[string]string{"form": form})
		return in, nil
	}}, Options{})
	start(t, c)
	for name, form := range emptyForms() {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, form); err != nil ||
			form.GetLabels()["form"] != name {
			t.Errorf("%s: Get() = %v with the labels %v, want the ones of its transform", name, err,
				form.GetLabels())
		}
		if got := form.GetObjectKind().GroupVersionKind(); got != configMapKind {
			t.Errorf("%s: the kind is %s, want ConfigMap", name, got)
		}
	}
	var typed corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, &typed); err != nil ||
		typed.Data["key"] != "value" || typed.UID == "" {
		t.Errorf("Get() = %v: %+v", err, typed)
	}
}
