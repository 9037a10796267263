package readapi

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	mediaJSON = "application/json"
	mediaYAML = "application/yaml"
)

// accepted is one media type that a client accepts.
type accepted struct {
	media      string // mediaJSON or mediaYAML
	parameters map[string]string
	quality    float64
	wildcards  int // "application/*" has one, "*/*" two
}

// as is the kind that objects are to be turned into, with its group and version: "Table v1 meta.k8s.io". All
// are empty for objects as they are.
func (a accepted) as() (kind, version, group string) {
	return a.parameters["as"], a.parameters["v"], a.parameters["g"]
}

// converts reports whether any of that is asked for, even if it makes no sense.
func (a accepted) converts() bool {
	kind, version, group := a.as()
	return kind != "" || version != "" || group != ""
}

// parseAccept returns the media types of the Accept headers that can be written, the preferred ones first. It
// reads them as a kube-apiserver does: names are compared as they are written, what cannot be read is left
// out, and a quality only decides about the order.
func parseAccept(header http.Header) []accepted {
	text := strings.Join(header.Values("Accept"), ",")
	if text == "" {
		return []accepted{{media: mediaJSON, quality: 1}}
	}
	var all []accepted
	for clause := range strings.SplitSeq(text, ",") {
		media, rest, _ := strings.Cut(clause, ";")
		a := accepted{quality: 1}
		switch strings.Trim(media, " ") {
		case "*", "*/*":
			a.media, a.wildcards = mediaJSON, 2
		case "application/*":
			a.media, a.wildcards = mediaJSON, 1
		case mediaJSON:
			a.media = mediaJSON
		case mediaYAML:
			a.media = mediaYAML
		default:
			continue
		}
		if a.parse(rest); a.parameters["stream"] == "" || a.parameters["stream"] == "watch" {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b accepted) int {
		return cmp.Or(cmp.Compare(b.quality, a.quality), cmp.Compare(a.wildcards, b.wildcards))
	})
	return all
}

// parse reads what follows the media type.
func (a *accepted) parse(text string) {
	a.parameters = map[string]string{}
	for parameter := range strings.SplitSeq(text, ";") {
		name, value, ok := strings.Cut(parameter, "=")
		if !ok || value == "" || strings.Contains(value, "=") {
			continue
		}
		if name = strings.Trim(name, " "); name == "q" {
			a.quality, _ = strconv.ParseFloat(value, 32) // what is no number comes last
			continue
		}
		a.parameters[name] = strings.Trim(value, " ")
	}
}

// shape is the form of an answer.
type shape struct {
	media string
	kind  shapeKind
	// version is that of all kinds but whole, as the apiVersion of the answer.
	version string
}

type shapeKind int

const (
	whole shapeKind = iota
	partialObject
	partialList
	table
)

var shapes = map[string]shapeKind{
	"PartialObjectMetadata": partialObject, "PartialObjectMetadataList": partialList, "Table": table,
}

// negotiate returns the first of the accepted forms that objects can be served in.
func negotiate(header http.Header) (shape, error) {
	for _, a := range parseAccept(header) {
		if !a.converts() {
			return shape{media: a.media}, nil
		}
		name, version, group := a.as()
		kind, known := shapes[name]
		if !known || group != "meta.k8s.io" || version != "v1" && version != "v1beta1" {
			continue
		}
		return shape{media: a.media, kind: kind, version: group + "/" + version}, nil
	}
	return shape{}, errNotAcceptable(mediaJSON + ", " + mediaYAML)
}

// negotiatePlain returns the first of the accepted media types, for what has one form only.
func negotiatePlain(header http.Header) (media string, err error) {
	for _, a := range parseAccept(header) {
		if !a.converts() {
			return a.media, nil
		}
	}
	return "", errNotAcceptable(mediaJSON + ", " + mediaYAML)
}
