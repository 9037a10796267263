package session

import (
	"context"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/manifest"
)

// DefinitionsFromFiles reads all CRDs from files, and the YAML and JSON files below directories.
// Files without a CRD are ignored if another file has one. It returns the valid CRDs together with the joined
// errors.
func DefinitionsFromFiles(ctx context.Context, paths []string, in io.Reader) ([]*crd.Definition, error) {
	var definitions []*crd.Definition
	err := manifest.ReadFiles(ctx, manifest.ReadOptions{Paths: paths, In: in},
		func(object *unstructured.Unstructured, report func(error)) {
			if object.GetKind() != definitionKind || object.GroupVersionKind().Group != crd.GVR.Group ||
				isKustomizePatch(object.Object) {
				return
			}
			definition, err := crd.FromUnstructured(object.Object)
			if err != nil {
				report(fmt.Errorf("the CustomResourceDefinition %s: %w", object.GetName(), err))
			} else {
				definitions = append(definitions, definition)
			}
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
