package readapi

import (
	"cmp"
	"mime"
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
}

// as is the kind that objects are to be turned into, with its group and version: "Table v1 meta.k8s.io". Empty
// means as they are.
func (a accepted) as() (kind, version, group string) {
	return a.parameters["as"], a.parameters["v"], a.parameters["g"]
}

// parseAccept returns the media types of the Accept headers that can be written, the preferred ones first.
func parseAccept(header http.Header) []accepted {
	values := header.Values("Accept")
	if len(values) == 0 {
		return []accepted{{media: mediaJSON, quality: 1}}
	}
	var all []accepted
	for clause := range strings.SplitSeq(strings.Join(values, ","), ",") {
		media, parameters, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		a := accepted{parameters: parameters, quality: 1}
		switch media {
		case "*/*", "application/*", mediaJSON:
			a.media = mediaJSON
		case mediaYAML:
			a.media = mediaYAML
		default:
			continue
		}
		if q, ok := parameters["q"]; ok {
			if a.quality, err = strconv.ParseFloat(q, 64); err != nil || a.quality <= 0 {
				continue
			}
		}
		all = append(all, a)
	}
	slices.SortStableFunc(all, func(a, b accepted) int { return cmp.Compare(b.quality, a.quality) })
	return all
}

// shape is the form of an answer.
type shape struct {
	media string
	kind  shapeKind
}

type shapeKind int

const (
	whole shapeKind = iota
	partialObject
	partialList
	table
)

var shapes = map[string]shapeKind{
	"": whole, "PartialObjectMetadata": partialObject, "PartialObjectMetadataList": partialList, "Table": table,
}

// negotiate returns the first of the accepted forms that can be served. streamed is for a watch, which is JSON only.
func negotiate(header http.Header, streamed bool) (shape, error) {
	for _, a := range parseAccept(header) {
		name, version, group := a.as()
		kind, known := shapes[name]
		if !known || name != "" && (group != "meta.k8s.io" || version != "v1") {
			continue
		}
		if streamed && a.media != mediaJSON {
			continue
		}
		return shape{media: a.media, kind: kind}, nil
	}
	served := mediaJSON + ", " + mediaYAML
	if streamed {
		served = mediaJSON
	}
	return shape{}, errNotAcceptable("only the following media types are accepted: " + served)
}
