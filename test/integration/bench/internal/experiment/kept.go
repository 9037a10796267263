package experiment

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// keepPaths returns the paths of five fields that controllers typically read from objects of the kind.
func keepPaths(kind string) []string {
	if kind == podKind {
		return []string{".spec.nodeName", ".spec.containers[*].image", ".status.phase", ".status.podIP",
			".status.conditions[*].status"}
	}
	return []string{"." + strings.Join(indexField, "."), ".spec.issuerRef.name", ".spec.dnsNames",
		".status.notAfter", ".status.conditions[*].status"}
}

// onePercentSelector selects a hundredth of the objects.
func onePercentSelector() labels.Selector {
	selector, err := labels.Parse("team=team-007,app.kubernetes.io/name in (checkout,payments,catalog,search)")
	if err != nil {
		panic(err) // impossible: each run of the benchmark parses this constant
	}
	return selector
}

// keepCacheConstructor returns a constructor for a cache that keeps five fields of each object. It keeps all
// fields of the objects that whole selects.
func keepCacheConstructor(storage dynamicinformer.Storage,
	whole labels.Selector) func(Options) (Cache, error) {
	return func(o Options) (Cache, error) {
		return constructorFor(dynamicinformer.ResourceOptions{Storage: storage,
			Keep: dynamicinformer.Keep{Paths: keepPaths(o.Kind), WholeLabels: whole}})(o)
	}
}

// keepOnly returns a transform that keeps the fields at some paths, and the metadata that controllers need.
func keepOnly(paths []string) cache.TransformFunc {
	var fields [][]string
	for _, path := range append(paths, ".apiVersion", ".kind", ".metadata.name", ".metadata.namespace",
		".metadata.uid", ".metadata.resourceVersion", ".metadata.generation", ".metadata.labels",
		".metadata.ownerReferences", ".metadata.finalizers", ".metadata.creationTimestamp",
		".metadata.deletionTimestamp") {
		fields = append(fields, strings.Split(strings.ReplaceAll(path[1:], "[*]", ".*"), "."))
	}
	return func(object any) (any, error) {
		if u, ok := object.(*unstructured.Unstructured); ok {
			kept := map[string]any{}
			for _, field := range fields {
				copyField(kept, u.Object, field)
			}
			return &unstructured.Unstructured{Object: kept}, nil
		}
		return object, nil
	}
}

// copyField copies a field. A step * selects the elements of a list.
func copyField(to, from map[string]any, field []string) {
	value, found := from[field[0]]
	switch {
	case !found:
	case len(field) == 1:
		to[field[0]] = value
	case field[1] == "*":
		list, _ := value.([]any)
		kept, _ := to[field[0]].([]any)
		for i, element := range list {
			if len(kept) == i {
				kept = append(kept, map[string]any{})
			}
			if element, ok := element.(map[string]any); ok {
				copyField(kept[i].(map[string]any), element, field[2:])
			}
		}
		to[field[0]] = kept
	default:
		below, ok := to[field[0]].(map[string]any)
		if !ok {
			below = map[string]any{}
			to[field[0]] = below
		}
		if value, ok := value.(map[string]any); ok {
			copyField(below, value, field[1:])
		}
	}
}

// jsonBytes returns the length of the JSON of all objects; zero if none are stored.
func jsonBytes(snapshot *dynamicinformer.Snapshot) (total int64, err error) {
	if snapshot.Err() != nil {
		return 0, nil
	}
	err = snapshot.AllJSON(func(_ string, text []byte) error {
		total += int64(len(text))
		return nil
	})
	return total, err
}
