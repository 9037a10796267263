package controllerruntime

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
)

// ReducedAnnotation is the key of an annotation of the reduced objects that readers and handlers receive: a
// keep-list has dropped some of their fields (see dynamicinformer.Keep). Its value has the kept fields. The
// key is not valid, so that every API server rejects an update with a reduced object, which would remove the
// dropped fields (TestReducedObjectsAreNotWritten), but not a patch of client.MergeFrom. Use NewClient, which
// also rejects updates of a custom resource's status, and replaced annotations (TestReplacedAnnotations).
//
// Functions that extract an apply configuration from a reduced object fail (TestExtractFails). Nothing
// recognizes fields that a program has copied into a new object: build such an object from a whole one.
const ReducedAnnotation = convert.ReducedAnnotation

// IsReduced reports whether an object from a Cache lacks fields. It also recognizes an object of which the
// caller has replaced the annotations, by its self-link, which servers no longer use.
func IsReduced(object client.Object) bool { return convert.IsReduced(object) }

// ReducedGet selects the result of Get for an object that is reduced in the cache. The zero value is unset;
// the default is GetLive.
type ReducedGet int

const (
	reducedGetUnset ReducedGet = iota
	// GetLive reads the object from the API server: see dynamicinformer.Informer.GetLive.
	GetLive
	// GetFails returns a *ReducedError.
	GetFails
	// GetReduced returns the reduced object, for which IsReduced is true.
	GetReduced
)

func (g ReducedGet) validate() error {
	if g < reducedGetUnset || g > GetReduced {
		return fmt.Errorf("ReducedGet is %d: use GetLive, GetFails or GetReduced", int(g))
	}
	return nil
}

// ReducedError is the error of a read that needs fields of a reduced object, and of a write that would remove
// them.
type ReducedError struct {
	Kind schema.GroupKind
	Key  client.ObjectKey
	// Verb is get, create, update, patch or apply.
	Verb string
	// Problem has the reason and the remedy.
	Problem string
}

// Error implements error.
func (e *ReducedError) Error() string {
	return fmt.Sprintf("%s %s %s: %s", e.Verb, e.Kind.Kind, e.Key, e.Problem)
}

// keptFields returns the fields of a stored object that lacks others which readers of its form need. It
// returns "" for a whole object.
func (s *scopedInformer) keptFields(stored any) string {
	if s.mayReduce && !s.informer().IsWhole(stored) {
		return s.informer().KeptFields()
	}
	return ""
}

// setReduction sets how the informer reduces objects of a form, and which indexes cannot be read therefore.
func (s *scopedInformer) setReduction(f convert.Form, configured map[string]configuredIndex) {
	s.droppedFields = map[string]string{}
	for _, c := range configured {
		if fields := c.index.Fields(); slices.ContainsFunc(fields, s.informer().Drops) {
			s.droppedFields[c.name] = fields[slices.IndexFunc(fields, s.informer().Drops)]
		}
	}
	s.mayReduce = !s.informer().IsWhole(nil) && !s.informer().StoresOnlyMetadata() &&
		(f != convert.Metadata || s.drops(".metadata.annotations.."))
}

// drops reports whether the cache may lack values of a path.
func (s *scopedInformer) drops(path string) bool { return s.transforms || s.informer().Drops(path) }

// getReduced implements Get for an object that is reduced in the cache.
func (c *Cache) getReduced(ctx context.Context, r *resource, scoped *scopedInformer, key client.ObjectKey,
	out reflect.Value, res convert.Result, share bool) error {
	switch cmp.Or(scoped.informerSet.settings.ReducedGet, c.options.ReducedGet) {
	case GetFails:
		return &ReducedError{r.key.gvk.GroupKind(), key, "get", "the cache has only some fields of it, and ReducedGet does not allow to read the others from the API server: add them to keep, or set GetLive"}
	case GetReduced:
		return r.converter.Write(out, res, share)
	}
	if o, ok := res.Stored.(metav1.Object); ok {
		key.Namespace = o.GetNamespace() // cluster-scoped objects have none
	}
	live, err := scoped.informer().GetLive(ctx, key.Namespace, key.Name)
	if err != nil {
		return fmt.Errorf("read %s %s, of which the cache has only some fields: %w", r.key.gvk.Kind, key, err)
	}
	return r.converter.WriteCopy(out, live)
}
