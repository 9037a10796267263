package bind

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery/crd"
)

// pageSize is the page size of lists; one definition can have a megabyte.
const pageSize = 50

// Definitions reads the CustomResourceDefinitions of a cluster, for Config.Check.
func Definitions(ctx context.Context, client dynamic.Interface) ([]*crd.Definition, error) {
	var all []*crd.Definition
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.Resource(crd.GVR).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("bind: listing CustomResourceDefinitions: %w", err)
		}
		for i := range page.Items {
			d, err := crd.FromUnstructured(page.Items[i].Object)
			if err != nil {
				return nil, fmt.Errorf("bind: %s: %w", page.Items[i].GetName(), err)
			}
			all = append(all, d)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}
