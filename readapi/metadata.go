package readapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// oddities are what is left out of an object that a client sends.
type oddities struct {
	unknown []string    // paths of fields
	owners  []types.UID // of references that are there twice
}

// canonicalMetadata writes the metadata of an object as a kube-apiserver does: without empty and unknown
// fields, and without what is there twice.
func canonicalMetadata(u *unstructured.Unstructured) (odd oddities, err error) {
	metadata, there := u.Object["metadata"]
	if !there {
		return odd, nil
	}
	data, err := json.Marshal(metadata)
	if err != nil {
		return odd, err
	}
	var typed metav1.ObjectMeta
	problems, err := kjson.UnmarshalStrict(data, &typed)
	if err != nil {
		return odd, err
	}
	for _, problem := range problems {
		var at kjson.FieldError
		if errors.As(problem, &at) {
			odd.unknown = append(odd.unknown, "metadata."+at.FieldPath())
		}
	}
	var distinct []metav1.OwnerReference
	for _, r := range typed.OwnerReferences {
		if slices.ContainsFunc(distinct,
			func(other metav1.OwnerReference) bool { return reflect.DeepEqual(other, r) }) {
			odd.owners = append(odd.owners, r.UID)
		} else {
			distinct = append(distinct, r)
		}
	}
	typed.OwnerReferences = distinct
	typed.SetSelfLink("")
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	if err != nil {
		return odd, err
	}
	if typed.CreationTimestamp.IsZero() {
		delete(fields, "creationTimestamp")
	}
	u.Object["metadata"] = fields
	return odd, nil
}

// validate lists what is wrong with a new object, or with one that takes the place of old: with its metadata,
// and its kind.
func (m mutation) validate(u, old *unstructured.Unstructured) error {
	var problems field.ErrorList
	if want := m.t.typ.Names.Kind; u.GetKind() != want {
		problems = append(problems, field.Invalid(field.NewPath("kind"), u.GetKind(), "must be "+want))
	}
	if old != nil || len(problems) == 0 {
		problems = append(m.validateMetadata(u, old), problems...)
	}
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: m.t.typ.Group, Kind: u.GetKind()},
		u.GetName(), problems)
}

func (m mutation) validateMetadata(u, old *unstructured.Unstructured) field.ErrorList {
	path := field.NewPath("metadata")
	problems := validation.ValidateObjectMetaAccessor(u, m.t.typ.Namespaced, m.validateName(old == nil), path)
	if old != nil {
		problems = append(problems, validation.ValidateObjectMetaAccessorUpdate(u, old, path)...)
		problems = append(problems, m.validateImmutable(u, old)...)
	}
	if m.t.typ.Custom || m.t.typ.Rules.AnyFinalizer {
		return problems
	}
	for i, name := range u.GetFinalizers() {
		if !strings.Contains(name, "/") && !slices.Contains(standardFinalizers, name) {
			problems = append(problems, field.Invalid(path.Child("finalizers").Index(i), name,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return problems
}

// standardFinalizers are those that objects of built-in types have without a domain.
var standardFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents,
	"kubernetes"}

// finalizerWarnings tells of the finalizers of a custom resource that are new and have no domain.
func (m mutation) finalizerWarnings(u, old *unstructured.Unstructured) (warnings []string) {
	if !m.t.typ.Custom {
		return nil // which refuses them, or takes any
	}
	known := slices.Clone(standardFinalizers)
	if old != nil {
		known = append(known, old.GetFinalizers()...)
	}
	finalizers := u.GetFinalizers()
	slices.Sort(finalizers)
	for _, name := range slices.Compact(finalizers) {
		if strings.Contains(name, "/") || slices.Contains(known, name) {
			continue
		}
		path := ""
		if strings.Contains(name, ".") {
			path = " including a path (/)"
		}
		warnings = append(warnings,
			fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name%s "+
				"to avoid accidental conflicts with other finalizer writers", name, path))
	}
	return warnings
}

// validateName returns what is wrong with a name; that of an existing object has been looked at when it was
// created.
func (m mutation) validateName(created bool) validation.ValidateNameFunc {
	if created && !m.t.typ.Rules.AnyName {
		return validation.NameIsDNSSubdomain
	}
	return func(name string, prefix bool) []string {
		if prefix {
			return content.IsPathSegmentPrefix(name)
		}
		return content.IsPathSegmentName(name)
	}
}
