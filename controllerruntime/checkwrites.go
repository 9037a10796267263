package controllerruntime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const removesFields = "the object has only the fields that the cache keeps, and the server would remove the " +
	"others: send a patch, or read it again with GetLive or from the API server"

// check returns a *ReducedError for a reduced object or apply configuration.
func (c *cacheClient) check(verb string, object any) error {
	_, reduced := applyField[map[string]string](object, "Annotations")[ReducedAnnotation]
	if o, ok := object.(client.Object); ok {
		reduced = IsReduced(o)
	}
	if reduced {
		return c.reducedError(verb, object, removesFields)
	}
	return nil
}

func (c *cacheClient) reducedError(verb string, object any, problem string) error {
	gk, key, err := targetOf(c.Client, object)
	if err != nil {
		return err
	}
	return &ReducedError{gk, key, verb, problem}
}

// checkPatch returns a *ReducedError for two kinds of patches of a reduced object: a patch that contains the
// object itself, and a patch that replaces a value from which the cache drops a part. Other values are safe,
// because a merge patch contains only the changes.
func (c *cacheClient) checkPatch(object client.Object, patch client.Patch) error {
	if !IsReduced(object) {
		return nil
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	var content map[string]any
	if patch.Type() != types.MergePatchType && patch.Type() != types.StrategicMergePatchType ||
		json.Unmarshal(data, &content) != nil {
		if bytes.Contains(data, []byte(ReducedAnnotation)) {
			return c.reducedError("patch", object, removesFields)
		}
		return nil
	}
	metadata, _ := content["metadata"].(map[string]any)
	annotations, patchesAnnotations := metadata["annotations"]
	set, _ := annotations.(map[string]any)
	switch replaced := c.replacedValue(object, "", content); {
	case set[ReducedAnnotation] != nil || metadata["selfLink"] == ReducedAnnotation: // null if replaced
		return c.reducedError("patch", object, removesFields)
	case patchesAnnotations && annotations == nil && c.drops(object, ".metadata.annotations.."):
		replaced = ".metadata.annotations"
		fallthrough
	case replaced != "":
		return c.reducedError("patch", object, fmt.Sprintf("the patch replaces %s, of which the cache drops "+
			"values, and the server would remove them: keep it, or read the object again with GetLive or from "+
			"the API server", replaced))
	}
	return nil
}

// replacedValue returns the path of a value that a patch replaces and from which the cache drops values;
// empty if there is none. A merge patch can replace a list, and a strategic merge patch also a map.
func (c *cacheClient) replacedValue(object client.Object, path string, fields map[string]any) string {
	if (fields["$patch"] == "replace" || fields["$retainKeys"] != nil) && c.drops(object, path+"..") {
		return path
	}
	for key, value := range fields {
		childPath := fmt.Sprintf("%s[%q]", path, key)
		elements, isList := value.([]any)
		switch {
		case strings.HasPrefix(key, "$"): // a directive of a strategic merge patch
			continue
		case isList && !merges(fields, key) && c.drops(object, childPath+".."):
			return childPath
		case isList:
			childPath += "[*]"
		default:
			elements = []any{value}
		}
		for _, element := range elements {
			element, _ := element.(map[string]any)
			if replaced := c.replacedValue(object, childPath, element); replaced != "" {
				return replaced
			}
		}
	}
	return ""
}

// merges reports whether a strategic merge patch merges a list instead of replacing it. Such a patch has the
// directive $setElementOrder, or an element with $patch: delete.
func merges(fields map[string]any, list string) bool {
	_, orders := fields["$setElementOrder/"+list]
	elements, _ := fields[list].([]any)
	return orders || slices.ContainsFunc(elements, func(element any) bool {
		directives, _ := element.(map[string]any)
		return directives["$patch"] == "delete"
	})
}

// drops reports whether the cache may drop values of a path in objects like object.
func (c *cacheClient) drops(object client.Object, path string) bool {
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return true
	}
	r, _ := c.cache.lookup(resourceKey{gvk, formOf(object)})
	if r == nil {
		return true
	}
	keptFields := object.GetAnnotations()[ReducedAnnotation]
	return slices.ContainsFunc(r.allInformers(), func(v *scopedInformer) bool {
		// With other fields, the settings have changed since the object was read.
		return v.informer().KeptFields() != keptFields || v.drops(path)
	})
}
