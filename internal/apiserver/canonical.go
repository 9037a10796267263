package apiserver

import (
	"bytes"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/naming"
)

// restoreCanonical stores an object without decoding it, and reports whether that was possible: the keys of
// its JSON must be sorted, and the object must be new.
func (s *Storage) restoreCanonical(data []byte) bool {
	c := s.canonicalizers.Get().(*canonicalizer)
	defer s.canonicalizers.Put(c)
	if s.options.Stamp || !c.read(data) || string(c.kind) == definitionKind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(string(c.apiVersion))
	version, ok := parseVersion(string(c.resourceVersion))
	if err != nil || !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	into := s.mu.kinds[schema.GroupKind{Group: gv.Group, Kind: string(c.kind)}]
	if into == nil || into.typ.Version(gv.Version) == nil || into.typ.Namespaced != (len(c.namespace) > 0) {
		return false
	}
	key := naming.KeyOf(string(c.namespace), string(c.name))
	if key == "" || into.objects[key] != nil {
		return false
	}
	s.mu.version = max(s.mu.version+1, version)
	o := &object{key: key, version: into.typ.Version(gv.Version).Name, labels: labelSet(c.labels)}
	s.setText(o, c.out)
	into.put(key, o)
	into.dropHistory(s.mu.version)
	return true
}

// canonicalizer converts the JSON of an object to the form in which the storage keeps it: without apiVersion,
// and as encoding/json writes it. It rejects any object that put could reject. Its fields are valid until the
// next read.
type canonicalizer struct {
	out       []byte
	canonical []byte // with apiVersion

	apiVersion, kind, namespace, name, resourceVersion []byte
	labels                                             []byte // a labelSet
}

// read converts an object, and reports whether that was possible.
func (c *canonicalizer) read(data []byte) bool {
	canonical, ok := jsontext.AppendCanonical(c.canonical[:0], data)
	*c = canonicalizer{out: c.out[:0], canonical: canonical, labels: c.labels[:0]}
	if !ok {
		return false
	}
	for m, err := range jsontext.Members(canonical) {
		if err != nil {
			return false
		}
		switch string(m.Key) {
		case "apiVersion":
			c.apiVersion, ok = plainString(m.Value)
		case "kind":
			c.kind, ok = plainString(m.Value)
		case "metadata":
			ok = everyMember(m.Value, c.readMetadata)
		}
		if !ok {
			return false
		}
	}
	c.out = jsontext.AppendWithout(c.out, canonical, "apiVersion")
	return len(c.apiVersion) > 0 && bytes.Count(c.apiVersion, []byte("/")) <= 1 && len(c.kind) > 0 &&
		len(c.name) > 0 && bytes.IndexByte(c.name, '/') < 0 && bytes.IndexByte(c.namespace, '/') < 0
}

// readMetadata reads a field of the metadata, and reports whether metav1.ObjectMeta accepts its value.
func (c *canonicalizer) readMetadata(m jsontext.Field) (ok bool) {
	switch string(m.Key) {
	case "name":
		c.name, ok = plainString(m.Value)
	case "namespace":
		c.namespace, ok = plainString(m.Value)
	case "resourceVersion":
		c.resourceVersion, ok = plainString(m.Value)
	case "uid", "generateName", "selfLink":
		ok = isString(m)
	case "creationTimestamp", "deletionTimestamp":
		ok = isTime(m.Value)
	case "generation", "deletionGracePeriodSeconds":
		_, ok = jsontext.ParseInteger(m.Value)
	case "labels":
		ok = everyMember(m.Value, func(label jsontext.Field) bool {
			value, plain := plainString(label.Value)
			c.labels = appendLabel(appendLabel(c.labels, label.Key), value)
			return plain
		})
	case "annotations":
		ok = everyMember(m.Value, isString)
	case "finalizers":
		ok = everyElement(m.Value, func(value []byte) bool { return value[0] == '"' })
	case "ownerReferences":
		ok = everyElement(m.Value, func(value []byte) bool { return everyMember(value, isOwnerField) })
	case "managedFields":
		ok = everyElement(m.Value, func(value []byte) bool { return everyMember(value, isManagedField) })
	default:
		ok = true
	}
	return ok
}

// everyMember reports whether a value is an object and a condition holds for its members.
func everyMember(object []byte, holds func(jsontext.Field) bool) bool {
	for m, err := range jsontext.Members(object) {
		if err != nil || !holds(m) {
			return false
		}
	}
	return true
}

// everyElement reports whether a value is an array and a condition holds for its elements.
func everyElement(array []byte, holds func(value []byte) bool) bool {
	if array[0] != '[' {
		return false
	}
	i, closed := jsontext.EnterContainer(array, 0)
	for !closed {
		end, ok, _ := jsontext.SkipValue(array, i)
		if !ok || !holds(array[i:end]) {
			return false
		}
		i, closed = jsontext.NextMember(array, end, ']')
	}
	return true
}

func isOwnerField(m jsontext.Field) bool {
	switch string(m.Key) {
	case "apiVersion", "kind", "name", "uid":
		return isString(m)
	case "controller", "blockOwnerDeletion":
		return m.Value[0] == 't' || m.Value[0] == 'f'
	}
	return false
}

func isManagedField(m jsontext.Field) bool {
	switch string(m.Key) {
	case "manager", "operation", "apiVersion", "fieldsType", "subresource":
		return isString(m)
	case "time":
		return isTime(m.Value)
	}
	return string(m.Key) == "fieldsV1" && m.Value[0] == '{'
}

func isTime(value []byte) bool {
	text, ok := plainString(value)
	_, err := time.Parse(time.RFC3339, string(text))
	return ok && err == nil
}

func isString(m jsontext.Field) bool { return m.Value[0] == '"' }

// plainString returns the text of a string without escapes.
func plainString(value []byte) (text []byte, ok bool) {
	if value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return nil, false
	}
	return value[1 : len(value)-1], true
}
