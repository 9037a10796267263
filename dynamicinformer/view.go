package dynamicinformer

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// viewKey identifies the options that distinguish informers of a type.
type viewKey struct {
	namespaces, labels, fields, versions, prune string
	// nothing is set for selectors that match nothing: their text is empty, like that of no selector.
	nothing          bool
	tweak, transform unsafe.Pointer
	storage          Storage
	shard            *Shard // nil: no shard
}

// view returns the key of the options.
func (o ResourceOptions) view() viewKey {
	key := viewKey{
		namespaces: o.Namespaces.set.Key(),
		nothing:    o.matchesNothing(),
		versions:   o.Versions.String(),
		prune:      o.Prune.key(),
		tweak:      identityOf(o.TweakListOptions),
		transform:  identityOf(o.Transform),
		storage:    o.Storage,
		shard:      o.Shard.orNil(),
	}
	if o.LabelSelector != nil {
		key.labels = o.LabelSelector.String()
	}
	if o.FieldSelector != nil {
		key.fields = o.FieldSelector.String()
	}
	if !key.storage.isSet() {
		key.storage.Mode = StoragePacked
	}
	return key
}

// identityOf returns the address of a function value. It distinguishes closures with the same code and
// different variables, which the code address of package reflect does not. The address is unique while f is
// reachable.
func identityOf[F func(schema.GroupVersionResource,
	*metav1.ListOptions) | cache.TransformFunc](f F) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&f))
}

// describe returns one line that describes how the options differ from the default.
func (o ResourceOptions) describe() string {
	var parts []string
	add := func(what, value string) {
		if value != "" {
			parts = append(parts, what+value)
		}
	}
	key := o.view()
	if !o.Namespaces.set.IsAll() {
		add("namespaces: ", o.Namespaces.String())
	}
	if key.nothing {
		parts = append(parts, "no objects")
	}
	add("labels: ", key.labels)
	add("fields: ", key.fields)
	if key.shard != nil {
		add("shard by ", string(key.shard.key))
	}
	if !o.Versions.versions.IsPinned() {
		add("versions: ", key.versions)
	}
	if key.tweak != nil {
		parts = append(parts, "requests adjusted")
	}
	if key.transform != nil {
		parts = append(parts, "transformed")
	}
	if o.Prune.isSet() {
		parts = append(parts, "pruned")
	}
	if key.storage.Mode != StoragePacked {
		add("storage: ", key.storage.Mode.String())
	}
	return strings.Join(parts, "; ")
}

// key identifies the dropped fields of a valid Prune.
func (p Prune) key() string {
	var texts []string
	paths, _ := p.paths()
	for _, path := range paths {
		texts = append(texts, fmt.Sprintf("%q", path))
	}
	slices.Sort(texts)
	return fmt.Sprintf("%q %v %q", slices.Sorted(slices.Values(p.Presets)), texts,
		slices.Sorted(slices.Values(p.Annotations)))
}
