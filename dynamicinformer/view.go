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

// viewKey is what makes two views of a type the same.
type viewKey struct {
	namespaces, labels, fields, versions, prune string
	// nothing is set for selectors that match nothing, whose text is that of none.
	nothing          bool
	tweak, transform unsafe.Pointer
	storage          Storage
	shard            *Shard // nil: everything
}

// view returns the key of the view that the options describe.
func (o ResourceOptions) view() viewKey {
	key := viewKey{
		namespaces: o.Namespaces.set.Key(),
		nothing:    o.matchesNothing(),
		versions:   o.Versions.String(),
		prune:      o.Prune.key(),
		tweak:      identityOf(o.TweakListOptions),
		transform:  identityOf(o.Transform),
		storage:    o.Storage,
		shard:      o.Shard.followed(),
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

// identityOf returns the address of a func value. Two funcs with the same code that have captured different
// variables differ by it, unlike by the address of their code, which is what package reflect has to offer. It
// is that of no other func for as long as f is kept.
func identityOf[F func(schema.GroupVersionResource,
	*metav1.ListOptions) | cache.TransformFunc](f F) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&f))
}

// describe says in one line how a view differs from all objects as they are.
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

// key identifies what is left out. It is that of a Prune that is valid.
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
