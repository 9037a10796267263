package session

import (
	"context"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/filesource"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/snapshot"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/codec"
	"github.com/crdcache/crdcache/internal/manifest"
)

// DefinitionsFromFiles reads all CRDs from files, snapshots, and the YAML and JSON files below directories.
// Files without a CRD are ignored if another file has one. It returns the valid CRDs together with the joined
// errors.
func DefinitionsFromFiles(ctx context.Context, paths []string, in io.Reader) ([]*crd.Definition, error) {
	var definitions []*crd.Definition
	isDefinition := func(t snapshot.Type) bool { return t.GVR().GroupResource() == crd.GVR.GroupResource() }
	err := filesource.ReadFiles(ctx, manifest.ReadOptions{Paths: paths, In: in}, isDefinition,
		func(object *unstructured.Unstructured, report func(error)) error {
			if object.GetKind() != definitionKind || object.GroupVersionKind().Group != crd.GVR.Group {
				return nil
			}
			if isKustomizePatch(object.Object) {
				return nil
			}
			definition, err := crd.FromUnstructured(object.Object)
			if err != nil {
				report(fmt.Errorf("the CustomResourceDefinition %s: %w", object.GetName(), err))
			} else {
				definitions = append(definitions, definition)
			}
			return nil
		})
	if len(definitions) == 0 && err == nil {
		err = fmt.Errorf("%w in %s", crd.ErrNoDefinitions, strings.Join(paths, ", "))
	}
	return definitions, err
}

// isKustomizePatch recognizes a kustomize patch for a CRD. kubebuilder generates such files next to the CRDs.
// They have the kind and the name, and no definition.
func isKustomizePatch(object map[string]any) bool {
	spec, _ := object["spec"].(map[string]any)
	return spec["group"] == nil && spec["names"] == nil && spec["versions"] == nil
}

const definitionKind = "CustomResourceDefinition"

// crdPageSize bounds the decoded CRDs in memory. A CRD can have 1 MB.
const crdPageSize = 20

// DefinitionsFromCluster lists the CRDs of the groups for which selectsGroup returns true.
func DefinitionsFromCluster(ctx context.Context, client dynamic.Interface,
	selectsGroup func(group string) bool) ([]*crd.Definition, error) {
	var definitions []*crd.Definition
	options := metav1.ListOptions{Limit: crdPageSize}
	for {
		page, err := client.Resource(crd.GVR).List(ctx, options)
		if err == nil {
			err = codec.CheckList(page)
		}
		if err != nil {
			return nil, fmt.Errorf("read the CustomResourceDefinitions of the cluster: %w", err)
		}
		for _, item := range page.Items {
			summary, err := crd.Summary(item.Object)
			if err != nil {
				return nil, fmt.Errorf("read the CustomResourceDefinition %s: %w", item.GetName(), err)
			}
			if !selectsGroup(summary.Group) {
				continue
			}
			definition, err := crd.FromUnstructured(item.Object)
			if err != nil {
				return nil, fmt.Errorf("read the CustomResourceDefinition %s: %w", item.GetName(), err)
			}
			definitions = append(definitions, definition)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return definitions, nil
		}
	}
}
