package readapi

import (
	"bytes"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// canonicals are readers that are not in use.
type canonicals struct{ sync.Pool }

func (c *canonicals) get() *canonical {
	if free, ok := c.Get().(*canonical); ok {
		return free
	}
	return &canonical{}
}

// restoreText stores an object as its text has it, and reports whether it could: it has the form in which
// objects are kept, is new, and nothing of it is to be changed.
func (s *Storage) restoreText(data []byte) (Outcome, bool) {
	c := s.reading.get()
	defer s.reading.Put(c)
	if s.options.Stamp || !c.read(data, c.out[:0]) || string(c.kind) == definitionKind.Kind {
		return "", false
	}
	gv, err := schema.ParseGroupVersion(string(c.apiVersion))
	kept, ok := parseVersion(string(c.resourceVersion))
	if err != nil || !ok {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	into := s.mu.kinds[schema.GroupKind{Group: gv.Group, Kind: string(c.kind)}]
	if into == nil || into.typ.version(gv.Version) == nil || into.typ.Namespaced != (len(c.namespace) > 0) {
		return "", false
	}
	key := objectKey(string(c.namespace), string(c.name))
	if key == "" || into.objects[key] != nil {
		return "", false
	}
	s.mu.version = max(s.mu.version+1, kept)
	o := &object{key: key, version: kept, stored: into.typ.version(gv.Version).Name,
		labels: labelSet(c.labels)}
	s.keep(o, c.out)
	into.put(key, o)
	into.forget(s.mu.version)
	return Added, true
}

// keep gives an object its text, which is copied.
func (s *Storage) keep(o *object, text []byte) {
	if !s.options.Compress || len(text) > blockSize/4 {
		o.body = bytes.Clone(text)
		return
	}
	o.packed = s.mu.blocks.add(text)
}
