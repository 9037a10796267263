package apiserver

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/naming"
)

// RestoreCanonical works like Restore for an object that need not be decoded. It returns false if that is
// impossible, as for an object that exists. It changes the text.
func (s *Storage) RestoreCanonical(c *manifest.Canonical) bool {
	if s.options.Stamp || c.Kind == definitionKind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(c.APIVersion)
	version, ok := parseVersion(c.ResourceVersion)
	if err != nil || !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	target := s.mu.kinds[schema.GroupKind{Group: gv.Group, Kind: c.Kind}]
	if target == nil || target.typ.Version(gv.Version) == nil ||
		target.typ.Namespaced != (c.Namespace != "") {
		return false
	}
	key := naming.KeyOf(c.Namespace, c.Name)
	if key == "" || target.objects[key] != nil {
		return false
	}
	s.mu.version = max(s.mu.version+1, version)
	o := &object{key: key, version: target.typ.Version(gv.Version).Name}
	s.setText(o, c.Body())
	s.change(target, key, o, true)
	if own := target.inVersion[o.version]; own != nil {
		s.change(own, key, o, true)
	}
	return true
}

// Skip uses a resource version like Restore, without an object.
func (s *Storage) Skip(resourceVersion string) {
	version, ok := parseVersion(resourceVersion)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.version++; ok {
		s.mu.version = max(s.mu.version, version)
	}
}
