package controllerruntime

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// guardedClient rejects writes of reduced objects, before the server does.
type guardedClient struct {
	client.Client
	cache *Cache
}

var _ client.Client = (*guardedClient)(nil)

func newGuardedClient(config *rest.Config, options client.Options, c *Cache) (client.Client, error) {
	upstream, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	return &guardedClient{upstream, c}, nil
}

const removesFields = "the object has only the fields that the cache keeps, and the server would remove the " +
	"others: send a patch, or read it again with GetLive or from the API server"

// check returns a *ReducedError for a reduced object or apply configuration.
func (c *guardedClient) check(verb string, object any) error {
	_, reduced := applyField[map[string]string](object, "Annotations")[ReducedAnnotation]
	if o, ok := object.(client.Object); ok {
		reduced = IsReduced(o)
	}
	if reduced {
		return c.reducedError(verb, object, removesFields)
	}
	return nil
}

func (c *guardedClient) reducedError(verb string, object any, problem string) error {
	gk, key, err := targetOf(c.Client, object)
	if err != nil {
		return err
	}
	return &ReducedError{gk, key, verb, problem}
}

// checkPatch returns a *ReducedError for two kinds of patches of a reduced object: a patch that contains the
// object itself, and a patch that replaces a value from which the cache drops a part. Other values are safe,
// because a merge patch contains only the changes.
func (c *guardedClient) checkPatch(object client.Object, patch client.Patch) error {
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
func (c *guardedClient) replacedValue(object client.Object, path string, fields map[string]any) string {
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
func (c *guardedClient) drops(object client.Object, path string) bool {
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

// Create implements client.Writer.
func (c *guardedClient) Create(ctx context.Context, object client.Object,
	opts ...client.CreateOption) error {
	if err := c.check("create", object); err != nil {
		return err
	}
	return c.Client.Create(ctx, object, opts...)
}

// Update implements client.Writer.
func (c *guardedClient) Update(ctx context.Context, object client.Object,
	opts ...client.UpdateOption) error {
	if err := c.check("update", object); err != nil {
		return err
	}
	return c.Client.Update(ctx, object, opts...)
}

// Patch implements client.Writer. Afterwards the object is whole: the server returns all fields.
func (c *guardedClient) Patch(ctx context.Context, object client.Object, patch client.Patch,
	opts ...client.PatchOption) error {
	if err := c.checkPatch(object, patch); err != nil {
		return err
	}
	return c.Client.Patch(ctx, object, patch, opts...)
}

// Apply implements client.Writer.
func (c *guardedClient) Apply(ctx context.Context, object runtime.ApplyConfiguration,
	opts ...client.ApplyOption) error {
	if err := c.check("apply", object); err != nil {
		return err
	}
	return c.Client.Apply(ctx, object, opts...)
}

// Status implements client.StatusClient.
func (c *guardedClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (c *guardedClient) SubResource(name string) client.SubResourceClient {
	return &guardedSubresource{c.Client.SubResource(name), c}
}

// guardedSubresource does not check Create, which sends only the name of the object.
type guardedSubresource struct {
	client.SubResourceClient
	client *guardedClient
}

// Update implements client.SubResourceWriter.
func (s *guardedSubresource) Update(ctx context.Context, object client.Object,
	opts ...client.SubResourceUpdateOption) error {
	sent := object
	if body := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts).SubResourceBody; body != nil {
		sent = body
	}
	if err := s.client.check("update", sent); err != nil {
		return err
	}
	return s.SubResourceClient.Update(ctx, object, opts...)
}

// Patch implements client.SubResourceWriter.
func (s *guardedSubresource) Patch(ctx context.Context, object client.Object, patch client.Patch,
	opts ...client.SubResourcePatchOption) error {
	body := (&client.SubResourcePatchOptions{}).ApplyOptions(opts).SubResourceBody
	if body == nil {
		body = object
	}
	if err := s.client.checkPatch(body, patch); err != nil {
		return err
	}
	return s.SubResourceClient.Patch(ctx, object, patch, opts...)
}

// Apply implements client.SubResourceWriter.
func (s *guardedSubresource) Apply(ctx context.Context, object runtime.ApplyConfiguration,
	opts ...client.SubResourceApplyOption) error {
	if err := s.client.check("apply", object); err != nil {
		return err
	}
	return s.SubResourceClient.Apply(ctx, object, opts...)
}
