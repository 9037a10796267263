package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// recording has the objects of a watch-list as templates for copies.
type recording struct {
	objects          []recordedObject
	apiVersion, kind string
}

// recordedObject is a recorded object, as the template of its copies.
type recordedObject struct {
	namespace, name, uid string
	// format is the JSON of a copy for fmt, with its name, UID, resource version and generation.
	format string
}

// Lengths of the variable ends of names and UIDs. All copies of an object have equal lengths.
const (
	nameDigits = 6
	uidDigits  = 12
)

// parseRecording reads the initial events of a watch-list, one per line.
func parseRecording(lines []byte) (*recording, error) {
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
		o, err := newRecordedObject(event.Object)
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

// ownedObjects returns the lines of a watch-list with objects of another kind, each controlled by the
// original.
func ownedObjects(lines []byte, kind string) []byte {
	var copies []byte
	for line := range bytes.Lines(lines) {
		var event struct {
			Object struct {
				APIVersion, Kind string
				Metadata         struct{ Name, UID string }
			}
		}
		if json.Unmarshal(line, &event) != nil {
			continue // parseRecording reports it
		}
		o := event.Object
		line = bytes.Replace(line, fmt.Appendf(nil, `"kind":%q`, o.Kind), fmt.Appendf(nil, `"kind":%q`, kind), 1)
		owner := fmt.Appendf(nil, `"metadata":{"ownerReferences":[{"apiVersion":%q,"blockOwnerDeletion":true,"controller":true,"kind":%q,"name":%q,"uid":%q}],`,
			o.APIVersion, o.Kind, o.Metadata.Name, o.Metadata.UID)
		copies = append(copies, bytes.Replace(line, []byte(`"metadata":{`), owner, 1)...)
	}
	return copies
}

// newRecordedObject prepares the copies of an object.
func newRecordedObject(object []byte) (recordedObject, error) {
	var parsed struct {
		Metadata struct {
			Name, Namespace, UID, ResourceVersion string
			Generation                            int64
		}
	}
	if err := json.Unmarshal(object, &parsed); err != nil {
		return recordedObject{}, err
	}
	m := parsed.Metadata
	if len(m.Name) <= nameDigits || len(m.UID) <= uidDigits || m.ResourceVersion == "" || m.Generation == 0 {
		return recordedObject{}, fmt.Errorf(
			"the object %q cannot be multiplied: it lacks a long name, a UID, a version or a generation",
			m.Name)
	}
	format := strings.NewReplacer("%", "%%", m.Name, "%[1]s",
		`"uid":"`+m.UID+`"`, `"uid":"%[2]s"`,
		`"resourceVersion":"`+m.ResourceVersion+`"`, `"resourceVersion":"%[3]d"`,
		fmt.Sprintf(`"generation":%d,`, m.Generation), `"generation":%[4]d,`).Replace(string(object))
	return recordedObject{namespace: m.Namespace, name: m.Name, uid: m.UID, format: format}, nil
}

func (r *recording) template(n int) *recordedObject { return &r.objects[n%len(r.objects)] }

func (r *recording) nameOf(n int) string {
	name := r.template(n).name
	return fmt.Sprintf("%s%0*x", name[:len(name)-nameDigits], nameDigits, n)
}

// keyOf returns the key of object n in caches.
func (r *recording) keyOf(n int) string { return r.template(n).namespace + "/" + r.nameOf(n) }

func (r *recording) appendObject(dst []byte, n int, version uint64, generation int) []byte {
	o := r.template(n)
	uid := fmt.Sprintf("%s%0*x", o.uid[:len(o.uid)-uidDigits], uidDigits, n)
	return fmt.Appendf(dst, o.format, r.nameOf(n), uid, version, generation)
}
