package apiserver

import (
	"bytes"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/naming"
)

// restoreCanonical stores an object without decoding it. It returns false if that is impossible: the
// keys of its JSON must be sorted, and the object must be new.
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
	target := s.mu.kinds[schema.GroupKind{Group: gv.Group, Kind: string(c.kind)}]
	if target == nil || target.typ.Version(gv.Version) == nil ||
		target.typ.Namespaced != (len(c.namespace) > 0) {
		return false
	}
	key := naming.KeyOf(string(c.namespace), string(c.name))
	if key == "" || target.objects[key] != nil {
		return false
	}
	s.mu.version = max(s.mu.version+1, version)
	o := &object{key: key, version: target.typ.Version(gv.Version).Name, labels: labelSet(c.labels)}
	s.setText(o, c.body)
	s.change(target, key, o, true)
	if own := target.inVersion[o.version]; own != nil {
		s.change(own, key, o, true)
	}
	return true
}

// canonicalizer converts the JSON of an object to the form in which the storage keeps it: without apiVersion,
// and as encoding/json writes it. It rejects any object that put could reject. Its fields are valid until the
// next read.
type canonicalizer struct {
	body      []byte
	canonical []byte // with apiVersion

	apiVersion, kind, namespace, name, resourceVersion []byte
	labels                                             []byte // a labelSet
}

// read converts an object, and reports whether that was possible.
func (c *canonicalizer) read(data []byte) bool {
	canonical, ok := jsontext.AppendCanonical(c.canonical[:0], data)
	*c = canonicalizer{body: c.body[:0], canonical: canonical, labels: c.labels[:0]}
	if !ok {
		return false
	}
	for m, err := range jsontext.Members(canonical) {
		if err != nil {
			return false
		}
		switch string(m.Key) {
		case "apiVersion":
			c.apiVersion, ok = unescapedString(m.Value)
		case "kind":
			c.kind, ok = unescapedString(m.Value)
		case "metadata":
			ok = everyMember(m.Value, c.readMetadata)
		}
		if !ok {
			return false
		}
	}
	c.body = jsontext.AppendWithout(c.body, canonical, "apiVersion")
	return len(c.apiVersion) > 0 && bytes.Count(c.apiVersion, []byte("/")) <= 1 && len(c.kind) > 0 &&
		len(c.name) > 0 && bytes.IndexByte(c.name, '/') < 0 && bytes.IndexByte(c.namespace, '/') < 0
}

// readMetadata reads a field of the metadata, and reports whether metav1.ObjectMeta accepts its value.
func (c *canonicalizer) readMetadata(m jsontext.Field) (ok bool) {
	switch string(m.Key) {
	case "name":
		c.name, ok = unescapedString(m.Value)
	case "namespace":
		c.namespace, ok = unescapedString(m.Value)
	case "resourceVersion":
		c.resourceVersion, ok = unescapedString(m.Value)
	case "uid", "generateName", "selfLink":
		ok = isString(m)
	case "creationTimestamp", "deletionTimestamp":
		ok = isTime(m.Value)
	case "generation", "deletionGracePeriodSeconds":
		_, ok = jsontext.ParseInteger(m.Value)
	case "labels":
		ok = everyMember(m.Value, func(label jsontext.Field) bool {
			value, unescaped := unescapedString(label.Value)
			c.labels = appendLabel(appendLabel(c.labels, label.Key), value)
			return unescaped
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

// everyMember reports whether a value is an object and all its members match.
func everyMember(object []byte, matches func(jsontext.Field) bool) bool {
	for m, err := range jsontext.Members(object) {
		if err != nil || !matches(m) {
			return false
		}
	}
	return true
}

// everyElement reports whether a value is an array and all its elements match.
func everyElement(array []byte, matches func(value []byte) bool) bool {
	if array[0] != '[' {
		return false
	}
	i, closed := jsontext.EnterContainer(array, 0)
	for !closed {
		end, ok, _ := jsontext.SkipValue(array, i)
		if !ok || !matches(array[i:end]) {
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
	text, ok := unescapedString(value)
	_, err := time.Parse(time.RFC3339, string(text))
	return ok && err == nil
}

func isString(m jsontext.Field) bool { return m.Value[0] == '"' }

// unescapedString returns the text of a string without escapes.
func unescapedString(value []byte) (text []byte, ok bool) {
	if value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return nil, false
	}
	return value[1 : len(value)-1], true
}
