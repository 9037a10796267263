package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

var _ readapi.Versioned = (*servedCollection)(nil)

// separateVersions creates the collection of each version of a type with several.
func (c *collection) separateVersions(version uint64) {
	for _, v := range c.typ.Versions {
		if len(c.typ.Versions) == 1 || c.inVersion[v.Name] != nil {
			continue
		}
		if c.inVersion == nil {
			c.inVersion = map[string]*collection{}
		}
		own := newCollection(version)
		for key, o := range c.objects {
			if o.version == v.Name {
				own.put(key, o)
			}
		}
		c.inVersion[v.Name] = own
	}
}

// InVersion implements readapi.Versioned.
func (c *servedCollection) InVersion(version string) readapi.Collection {
	selects := c.storage.options.Select
	c.storage.mu.Lock()
	defer c.storage.mu.Unlock()
	own := c.collection.inVersion[version]
	if selects == nil || own == nil {
		return c
	}
	all, convert := selects(&c.typ, version, len(own.objects) > 0)
	if convert {
		return c
	}
	inVersion := *c
	inVersion.typ.NeedsConversion, inVersion.typ.ServesUnconverted = false, true
	if !all {
		inVersion.collection = own
	}
	return &inVersion
}

// PutInVersion works like Restore or Apply for an object that is used only by requests for its version:
// others use the object of that name in another version. The storage must keep all versions.
func (s *Storage) PutInVersion(obj *unstructured.Unstructured, restore bool) (Outcome, error) {
	return s.put(s.copyOf(obj), putOptions{now: s.options.Now(), restore: restore, onlyInVersion: true})
}

// DeleteInVersion removes an object in one version. Requests for any version then use another.
func (s *Storage) DeleteInVersion(gr schema.GroupResource, namespace, name, version string) {
	key := naming.KeyOf(namespace, name)
	s.mu.Lock()
	c := s.mu.types[gr]
	if c == nil || c.inVersion[version] == nil {
		s.mu.Unlock()
		s.Delete(gr, namespace, name)
		return
	}
	defer s.mu.Unlock()
	if own := c.inVersion[version]; own.objects[key] != nil {
		s.mu.version++
		s.change(own, key, nil, false)
		s.useOtherVersion(c, key, version)
	}
}

// useOtherVersion replaces an object in a version by the one in the most preferred other version.
func (s *Storage) useOtherVersion(c *collection, key, version string) {
	if o := c.objects[key]; o == nil || o.version != version {
		return
	}
	var other *object
	for _, v := range slices.Backward(c.typ.Versions) {
		if own := c.inVersion[v.Name]; own != nil && own.objects[key] != nil && v.Name != version {
			other = own.objects[key]
		}
	}
	s.change(c, key, other, false)
}

// Object returns an object as it is stored in a version, or nil.
func (s *Storage) Object(gr schema.GroupResource, namespace, name, version string) readapi.Object {
	key := naming.KeyOf(namespace, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.types[gr]
	if c == nil {
		return nil
	}
	if own := c.inVersion[version]; own != nil {
		return objectOrNil(own.objects[key])
	}
	return objectOrNil(c.objects[key])
}

// HasObjects reports whether a type is known and has objects.
func (s *Storage) HasObjects(gr schema.GroupResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.types[gr]
	return c != nil && len(c.objects) > 0
}

// Versions returns the number of objects of a type by the version in which requests for all versions read
// them, and the number of objects that are stored in one of the named versions.
func (s *Storage) Versions(gr schema.GroupResource, named ...string) (counts map[string]int, namedCount int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts = map[string]int{}
	c := s.mu.types[gr]
	for key, o := range c.objects {
		counts[o.version]++
		if slices.ContainsFunc(named, func(v string) bool {
			return v == o.version || c.inVersion[v] != nil && c.inVersion[v].objects[key] != nil
		}) {
			namedCount++
		}
	}
	return counts, namedCount
}
