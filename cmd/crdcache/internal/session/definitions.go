package session

import (
	"context"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/offline"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/snapshot"
)

// DefinitionsFromFiles reads all definitions of files, which may be snapshots, and of the YAML and JSON files
// below directories, as --from reads them. Files without any definition are fine as long as one has some.
// What can be read comes together with the joined errors.
func DefinitionsFromFiles(ctx context.Context, paths []string, in io.Reader) ([]*crd.Definition, error) {
	var all []*crd.Definition
	wanted := func(t snapshot.Type) bool { return t.GVR().GroupResource() == crd.GVR.GroupResource() }
	err := offline.ReadFiles(ctx, manifest.ReadOptions{Paths: paths, In: in}, wanted,
		func(object *unstructured.Unstructured, wrong func(error)) error {
			if object.GetKind() != definitionKind || object.GroupVersionKind().Group != crd.GVR.Group {
				return nil
			}
			if isPatch(object.Object) {
				return nil
			}
			definition, err := crd.FromUnstructured(object.Object)
			if err != nil {
				wrong(fmt.Errorf("the CustomResourceDefinition %s: %w", object.GetName(), err))
			} else {
				all = append(all, definition)
			}
			return nil
		})
	if len(all) == 0 && err == nil {
		err = fmt.Errorf("%w in %s", crd.ErrNone, strings.Join(paths, ", "))
	}
	return all, err
}

// isPatch recognises what kustomize merges into a definition, as kubebuilder lays it beside them: it has the
// kind and the name of one, and nothing that says what it defines.
func isPatch(object map[string]any) bool {
	spec, _ := object["spec"].(map[string]any)
	return spec["group"] == nil && spec["names"] == nil && spec["versions"] == nil
}

const definitionKind = "CustomResourceDefinition"

// pageSize bounds how many definitions are in memory at once as the server sends them: one can be 1 MB.
const pageSize = 20

// DefinitionsFromCluster reads the definitions of a cluster that belong to one of the groups; every group
// where wanted returns true.
func DefinitionsFromCluster(ctx context.Context, client dynamic.Interface,
	wanted func(group string) bool) ([]*crd.Definition, error) {
	var all []*crd.Definition
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.Resource(crd.GVR).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("reading the CustomResourceDefinitions of the cluster: %w", err)
		}
		for _, item := range page.Items {
			summary, err := crd.Summary(item.Object)
			if err != nil {
				return nil, fmt.Errorf("reading the CustomResourceDefinition %s: %w", item.GetName(), err)
			}
			if !wanted(summary.Group) {
				continue
			}
			definition, err := crd.FromUnstructured(item.Object)
			if err != nil {
				return nil, fmt.Errorf("reading the CustomResourceDefinition %s: %w", item.GetName(), err)
			}
			all = append(all, definition)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}
