package readapi

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// immutableContents are the fields that an object with "immutable: true" keeps.
var immutableContents = map[schema.GroupResource][]string{
	{Resource: "configmaps"}: {"data", "binaryData"},
	{Resource: "secrets"}:    {"data"},
}

// validateImmutable lists the changes of an immutable ConfigMap or Secret.
func (m mutation) validateImmutable(u, old *unstructured.Unstructured) (problems field.ErrorList) {
	contents := immutableContents[m.t.typ.GroupResource()]
	if len(contents) == 0 || old.Object["immutable"] != true {
		return nil
	}
	for _, name := range slices.Concat([]string{"immutable"}, contents) {
		was, is := old.Object[name], u.Object[name]
		if name != "immutable" && isEmpty(was) && isEmpty(is) || apiequality.Semantic.DeepEqual(was, is) {
			continue
		}
		problems = append(problems, field.Forbidden(field.NewPath(name),
			"field is immutable when `immutable` is set"))
	}
	return problems
}

// isEmpty reports whether a field is absent, or a map without keys.
func isEmpty(value any) bool {
	content, isMap := value.(map[string]any)
	return value == nil || isMap && len(content) == 0
}
