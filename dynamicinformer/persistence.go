package dynamicinformer

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/persist"
)

// notPersistent is the persister of all informers of factories without Options.Persistence.
var notPersistent = persist.NewDisabled("the factory has no Persistence")

func newPersister(i *Informer) *persist.Persister {
	if i.deps.persistence == nil {
		return notPersistent
	}
	if reason := i.options.whyNotPersisted(i.gvr); reason != "" {
		return persist.NewDisabled(reason)
	}
	view := i.options.view(i.gvr)
	if i.deps.cluster != "" {
		view.Options = fmt.Sprintf("cluster %q %s", i.deps.cluster, view.Options)
	}
	return persist.New(i.deps.persistence, persist.Source{GVR: i.gvr, Cache: i.core, Health: i.health,
		View: view})
}

// Persistence describes how the informer persists its objects (see Options.Persistence).
func (i *Informer) Persistence() status.Persistence { return i.persister.Status() }

var secrets = schema.GroupResource{Resource: "secrets"}

// whyNotPersisted returns the reason why an informer with these options is not persisted, or "".
func (o ResourceOptions) whyNotPersisted(gvr schema.GroupVersionResource) string {
	switch {
	case o.Persist != nil && !*o.Persist:
		return "ResourceOptions.Persist is false"
	case o.Storage.Mode == StorageNone:
		return "StorageNone stores no objects"
	case o.Persist == nil && gvr.GroupResource() == secrets:
		return "Secrets require ResourceOptions.Persist"
	case o.Transform != nil:
		return "its Transform may be another one in the next process"
	case o.TweakListOptions != nil:
		return "its TweakListOptions may be another function in the next process"
	case o.Shard.orNil() != nil:
		return "its shard may be another one in the next process"
	case o.Selectors != nil:
		return "its selectors may be others in the next process"
	case o.matchesNothing():
		return "its selector matches nothing"
	}
	return ""
}

// view identifies the content beyond the process.
func (o ResourceOptions) view(gvr schema.GroupVersionResource) persistence.View {
	key := o.key()
	selected := key.selected()
	return persistence.View{Resource: gvr, Options: fmt.Sprintf("%q %q", key.versions, selected),
		Complete: selected == ResourceOptions{}.key().selected()}
}

// selected identifies the stored objects and fields.
func (k optionsKey) selected() [6]string {
	content := ""
	if k.storage.Mode == StorageMetadata {
		content = StorageMetadata.String()
	}
	return [...]string{k.namespaces, k.labels, k.anyOf, k.fields, content, k.prune}
}
