package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// canonicalMetadata writes metadata as a kube-apiserver does: without empty, unknown and duplicate fields.
func canonicalMetadata(u *unstructured.Unstructured) (dropped droppedFields, err error) {
	metadata, exists := u.Object["metadata"]
	if !exists {
		return dropped, nil
	}
	data, err := json.Marshal(metadata)
	if err != nil {
		return dropped, err
	}
	var objectMeta metav1.ObjectMeta
	problems, err := kjson.UnmarshalStrict(data, &objectMeta)
	if err != nil {
		return dropped, err
	}
	for _, problem := range problems {
		var fieldErr kjson.FieldError
		if errors.As(problem, &fieldErr) {
			dropped.unknown = append(dropped.unknown, "metadata."+fieldErr.FieldPath())
		}
	}
	var distinctOwners []metav1.OwnerReference
	for _, r := range objectMeta.OwnerReferences {
		if slices.ContainsFunc(distinctOwners,
			func(other metav1.OwnerReference) bool { return reflect.DeepEqual(other, r) }) {
			dropped.duplicateOwners = append(dropped.duplicateOwners, string(r.UID))
		} else {
			distinctOwners = append(distinctOwners, r)
		}
	}
	objectMeta.OwnerReferences = distinctOwners
	objectMeta.SetSelfLink("")
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&objectMeta)
	if err != nil {
		return dropped, err
	}
	if objectMeta.CreationTimestamp.IsZero() {
		delete(fields, "creationTimestamp")
	}
	u.Object["metadata"] = fields
	return dropped, nil
}

// validate validates the kind and the metadata of an object. old is nil for a new object.
func (s *strategy) validate(u, old *unstructured.Unstructured) error {
	var problems field.ErrorList
	if want := s.kind().Kind; u.GetKind() != want {
		problems = append(problems, field.Invalid(field.NewPath("kind"), u.GetKind(), "must be "+want))
	}
	if old != nil || len(problems) == 0 {
		problems = append(s.validateMetadata(u, old), problems...)
	}
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: s.GVR.Group, Kind: u.GetKind()},
		u.GetName(), problems)
}

func (s *strategy) validateMetadata(u, old *unstructured.Unstructured) field.ErrorList {
	path, typ := field.NewPath("metadata"), s.collection.typ
	problems := validation.ValidateObjectMetaAccessor(u, typ.Namespaced, s.validateName(old == nil), path)
	if old != nil {
		problems = append(problems, validation.ValidateObjectMetaAccessorUpdate(u, old, path)...)
		problems = append(problems, s.validateImmutable(u, old)...)
	}
	if typ.Custom || s.collection.rules.AnyFinalizer {
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

// validateName returns the function that validates the names of objects. The name of an existing object was
// valid when it was created.
func (s *strategy) validateName(isCreate bool) validation.ValidateNameFunc {
	if isCreate && !s.collection.rules.AnyName {
		return validation.NameIsDNSSubdomain
	}
	return func(name string, prefix bool) []string {
		if prefix {
			return path.IsValidPathSegmentPrefix(name)
		}
		return path.IsValidPathSegmentName(name)
	}
}

// standardFinalizers are the finalizers of built-in types that need no domain.
var standardFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents,
	"kubernetes"}

// finalizerWarnings returns a warning for each new finalizer of a custom resource without a domain.
func (s *strategy) finalizerWarnings(u, old *unstructured.Unstructured) (warnings []string) {
	if !s.collection.typ.Custom {
		return nil
	}
	standard := slices.Clone(standardFinalizers)
	if old != nil {
		standard = append(standard, old.GetFinalizers()...)
	}
	finalizers := u.GetFinalizers()
	slices.Sort(finalizers)
	for _, name := range slices.Compact(finalizers) {
		if strings.Contains(name, "/") || slices.Contains(standard, name) {
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

// immutableFields are the fields that cannot change in an object with "immutable: true".
var immutableFields = map[schema.GroupResource][]string{
	{Resource: "configmaps"}: {"data", "binaryData"},
	{Resource: "secrets"}:    {"data"},
}

func (s *strategy) validateImmutable(u, old *unstructured.Unstructured) (problems field.ErrorList) {
	fields := immutableFields[s.resource()]
	if len(fields) == 0 || old.Object["immutable"] != true {
		return nil
	}
	for _, name := range slices.Concat([]string{"immutable"}, fields) {
		before, after := old.Object[name], u.Object[name]
		if name != "immutable" && isEmpty(before) && isEmpty(after) ||
			apiequality.Semantic.DeepEqual(before, after) {
			continue
		}
		problems = append(problems, field.Forbidden(field.NewPath(name),
			"field is immutable when `immutable` is set"))
	}
	return problems
}

// isEmpty reports whether a field is absent or an empty map.
func isEmpty(value any) bool {
	content, isMap := value.(map[string]any)
	return value == nil || isMap && len(content) == 0
}
