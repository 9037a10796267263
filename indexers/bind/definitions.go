package bind

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/crdcache/crdcache/discovery/crd"
)

// pageSize bounds the decoded CRDs in memory. A CRD can have 1 MB.
const pageSize = 20

// Definitions reads the CustomResourceDefinitions of a cluster, for Config.Check. If selectsGroup is not nil,
// it reads only definitions of groups for which it returns true.
func Definitions(ctx context.Context, client dynamic.Interface,
	selectsGroup func(group string) bool) ([]*crd.Definition, error) {
	var definitions []*crd.Definition
	lists := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.Resource(crd.GVR).List(ctx, options)
	})
	lists.PageSize = pageSize
	err := lists.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		object := item.(*unstructured.Unstructured)
		definition, err := crd.Summary(object.Object)
		if err == nil && selectsGroup != nil && !selectsGroup(definition.Group) {
			return nil
		}
		if err == nil {
			definition, err = crd.FromUnstructured(object.Object)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", object.GetName(), err)
		}
		definitions = append(definitions, definition)
		return nil
	})
	if err != nil && !apierrors.IsNotFound(err) { // the server has none
		return nil, fmt.Errorf("read the CustomResourceDefinitions of the cluster: %w", err)
	}
	return definitions, nil
}
