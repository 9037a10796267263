package requests

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/packed"
)

// ListPage requests a page of a list of a type, in a namespace or all (""), for programs that list once.
// With a Client, the objects are packed, and without managedFields if dropsManagedFields is set. Otherwise
// they are *unstructured.Unstructured. It does not repeat the request. meta has the resource version and the
// continue token.
func ListPage(ctx context.Context, from dynamic.Interface, gvr schema.GroupVersionResource, namespace string,
	options metav1.ListOptions, dropsManagedFields bool) (items []any, meta metav1.ListMeta, err error) {
	pruner, _ := packed.NewPruner(packed.Prune{ManagedFields: dropsManagedFields}) // fails only for paths
	objects := ObjectOptions{Packer: packed.NewPacker(pruner)}
	list, err := newResource(from, gvr, namespace, objects, nil).List(ctx, options, true)
	switch list := list.(type) {
	case *packed.List:
		items = naming.Map(list.Items, func(object *packed.Object) any { return object })
		meta = list.ListMeta
	case *unstructured.UnstructuredList:
		for k := range list.Items {
			items = append(items, &list.Items[k])
		}
		meta = metav1.ListMeta{ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue()}
	}
	return items, meta, err
}

// CheckList returns an error if client-go's decoder has read another answer as an empty list: a Status, whose
// failure is the error, a Table, or an object, which has a name. An answer without a list is no empty list.
// CheckList also removes the items that are null, which the decoder has read as objects.
func CheckList(list *unstructured.UnstructuredList) error {
	list.Items = slices.DeleteFunc(list.Items, func(item unstructured.Unstructured) bool {
		const typeMembers = 2
		return item.Object["metadata"] == nil && len(item.Object) <= typeMembers
	})
	gvk := list.GroupVersionKind()
	isStatus := gvk == metav1.Unversioned.WithKind("Status")
	isTable := gvk.Kind == "Table" && gvk.Group == metav1.GroupName
	name, _, _ := unstructured.NestedString(list.Object, "metadata", "name")
	if len(list.Items) > 0 || name == "" && !isStatus && !isTable {
		return nil
	}
	status := &metav1.Status{}
	if isStatus && runtime.DefaultUnstructuredConverter.FromUnstructured(list.Object, status) == nil &&
		status.Status == metav1.StatusFailure {
		return apierrors.FromObject(status)
	}
	return fmt.Errorf("the server answered the list request with the kind %s, which is no list", gvk.Kind)
}
