package apiserver

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/naming"
)

// restoreCanonical stores an object without decoding all of it. It returns false if that is impossible: the
// keys of its JSON must be sorted, and the object must be new.
func (s *Storage) restoreCanonical(data []byte) bool {
	c := s.canonicalizers.Get().(*canonicalizer)
	defer s.canonicalizers.Put(c)
	if s.options.Stamp || !c.read(data) || c.kind == definitionKind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(c.apiVersion)
	version, ok := parseVersion(c.meta.ResourceVersion)
	if err != nil || !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	target := s.mu.kinds[schema.GroupKind{Group: gv.Group, Kind: c.kind}]
	if target == nil || target.typ.Version(gv.Version) == nil ||
		target.typ.Namespaced != (c.meta.Namespace != "") {
		return false
	}
	key := naming.KeyOf(c.meta.Namespace, c.meta.Name)
	if key == "" || target.objects[key] != nil {
		return false
	}
	s.mu.version = max(s.mu.version+1, version)
	o := &object{key: key, version: target.typ.Version(gv.Version).Name}
	s.setText(o, c.body)
	s.change(target, key, o, true)
	if own := target.inVersion[o.version]; own != nil {
		s.change(own, key, o, true)
	}
	return true
}

// canonicalizer converts the JSON of an object to the form in which the storage keeps it: without apiVersion,
// and as encoding/json writes it. Its fields are valid until the next read.
type canonicalizer struct {
	canonical, body  []byte
	apiVersion, kind string
	meta             metav1.ObjectMeta
}

// read converts an object. It returns false if the object must be decoded.
func (c *canonicalizer) read(data []byte) bool {
	canonical, ok := jsontext.AppendCanonical(c.canonical[:0], data)
	*c = canonicalizer{canonical: canonical, body: c.body[:0]}
	if !ok {
		return false
	}
	into := map[string]any{"apiVersion": &c.apiVersion, "kind": &c.kind, "metadata": &c.meta}
	for m, err := range jsontext.Members(canonical) {
		if err != nil || into[string(m.Key)] != nil && json.Unmarshal(m.Value, into[string(m.Key)]) != nil {
			return false
		}
	}
	c.body = jsontext.AppendWithout(c.body, canonical, "apiVersion")
	return c.apiVersion != "" && strings.Count(c.apiVersion, "/") <= 1 && c.kind != "" && c.meta.Name != "" &&
		!strings.Contains(c.meta.Name+c.meta.Namespace, "/")
}
