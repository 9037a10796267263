package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// recording has the objects of a watch-list as templates for copies.
type recording struct {
	objects          []splitObject
	apiVersion, kind string
}

// splitObject is the JSON of an object, split at the parts that differ between copies.
type splitObject struct {
	namespace, name, uid string
	pieces               [][]byte
	parts                []variablePart // between the pieces
}

// variablePart is a part that differs between copies of an object.
type variablePart int

const (
	partName variablePart = iota
	partUID
	partVersion
	partGeneration
)

// Lengths of the variable ends of names and UIDs. All copies of an object have equal lengths.
const (
	nameDigits = 6
	uidDigits  = 12
)

// recordAPI reads the initial events of a watch-list, one per line.
func recordAPI(lines []byte) (*recording, error) {
	r := &recording{}
	for line := range bytes.Lines(lines) {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		var typed struct{ APIVersion, Kind string }
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading a recorded event: %w", err)
		}
		if event.Type != "ADDED" {
			continue
		}
		o, err := splitJSON(event.Object)
		if err = errors.Join(err, json.Unmarshal(event.Object, &typed)); err != nil {
			return nil, err
		}
		r.apiVersion, r.kind = typed.APIVersion, typed.Kind
		r.objects = append(r.objects, o)
	}
	if len(r.objects) == 0 {
		return nil, errors.New("the recorded watch-list has no objects")
	}
	return r, nil
}

// owned returns the lines of a watch-list with objects of another kind, each controlled by the original.
func owned(lines []byte, kind string) []byte {
	var copies []byte
	for line := range bytes.Lines(lines) {
		var event struct {
			Object struct {
				APIVersion, Kind string
				Metadata         struct{ Name, UID string }
			}
		}
		if json.Unmarshal(line, &event) != nil {
			continue // recordAPI reports it
		}
		o := event.Object
		line = bytes.Replace(line, fmt.Appendf(nil, `"kind":%q`, o.Kind), fmt.Appendf(nil, `"kind":%q`, kind), 1)
		owner := fmt.Appendf(nil, `"metadata":{"ownerReferences":[{"apiVersion":%q,"blockOwnerDeletion":true,"controller":true,"kind":%q,"name":%q,"uid":%q}],`,
			o.APIVersion, o.Kind, o.Metadata.Name, o.Metadata.UID)
		copies = append(copies, bytes.Replace(line, []byte(`"metadata":{`), owner, 1)...)
	}
	return copies
}

// splitJSON splits an object at its name, UID, version and generation.
func splitJSON(object []byte) (splitObject, error) {
	var parsed struct {
		Metadata struct {
			Name, Namespace, UID, ResourceVersion string
			Generation                            int64
		}
	}
	if err := json.Unmarshal(object, &parsed); err != nil {
		return splitObject{}, err
	}
	m := parsed.Metadata
	if len(m.Name) <= nameDigits || len(m.UID) <= uidDigits || m.ResourceVersion == "" || m.Generation == 0 {
		return splitObject{}, fmt.Errorf(
			"the object %q cannot be multiplied: it lacks a long name, a UID, a version or a generation",
			m.Name)
	}
	o := splitObject{namespace: m.Namespace, name: m.Name, uid: m.UID}
	type place struct {
		start, end int
		part       variablePart
	}
	var places []place
	find := func(before, text, after string, p variablePart) {
		pattern := []byte(before + text + after)
		for from := 0; ; {
			at := bytes.Index(object[from:], pattern)
			if at < 0 {
				return
			}
			start := from + at + len(before)
			places = append(places, place{start, start + len(text), p})
			from = start + len(text)
		}
	}
	find("", m.Name, "", partName)
	find(`"uid":"`, m.UID, `"`, partUID)
	find(`"resourceVersion":"`, m.ResourceVersion, `"`, partVersion)
	find(`"generation":`, strconv.FormatInt(m.Generation, 10), `,`, partGeneration)
	slices.SortFunc(places, func(a, b place) int { return a.start - b.start })
	from := 0
	for _, p := range places {
		o.pieces = append(o.pieces, bytes.Clone(object[from:p.start]))
		o.parts = append(o.parts, p.part)
		from = p.end
	}
	o.pieces = append(o.pieces, bytes.Clone(object[from:]))
	return o, nil
}

func (r *recording) template(n int) *splitObject { return &r.objects[n%len(r.objects)] }

func (r *recording) nameOf(n int) string {
	name := r.template(n).name
	return fmt.Sprintf("%s%0*x", name[:len(name)-nameDigits], nameDigits, n)
}

// keyOf returns the key of object n in caches.
func (r *recording) keyOf(n int) string { return r.template(n).namespace + "/" + r.nameOf(n) }

func (r *recording) appendObject(dst []byte, n int, version uint64, generation int) []byte {
	o, name := r.template(n), r.nameOf(n)
	for i, piece := range o.pieces {
		dst = append(dst, piece...)
		if i == len(o.parts) {
			break
		}
		switch o.parts[i] {
		case partName:
			dst = append(dst, name...)
		case partUID:
			dst = fmt.Appendf(dst, "%s%0*x", o.uid[:len(o.uid)-uidDigits], uidDigits, n)
		case partVersion:
			dst = strconv.AppendUint(dst, version, 10)
		case partGeneration:
			dst = strconv.AppendInt(dst, int64(generation), 10)
		}
	}
	return dst
}
