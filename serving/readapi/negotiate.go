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

type acceptedMediaType struct {
	mediaType  string // mediaJSON or mediaYAML
	parameters map[string]string
	quality    float64
	wildcards  int // "application/*" has one, "*/*" two
}

// conversion returns the kind to convert to, such as "Table", "v1", "meta.k8s.io". All are empty without a
// conversion.
func (a acceptedMediaType) conversion() (kind, version, group string) {
	return a.parameters["as"], a.parameters["v"], a.parameters["g"]
}

// converts reports whether a conversion is requested, valid or not.
func (a acceptedMediaType) converts() bool {
	kind, version, group := a.conversion()
	return kind != "" || version != "" || group != ""
}

// parseAccept returns the supported media types of the Accept headers in order of preference. Like a
// kube-apiserver it compares names case-sensitively and ignores invalid clauses. The quality affects only the
// order.
func parseAccept(header http.Header) []acceptedMediaType {
	text := strings.Join(header.Values("Accept"), ",")
	if text == "" {
		return []acceptedMediaType{{mediaType: mediaJSON, quality: 1}}
	}
	var accepted []acceptedMediaType
	for clause := range strings.SplitSeq(text, ",") {
		media, rest, _ := strings.Cut(clause, ";")
		a := acceptedMediaType{quality: 1}
		switch strings.Trim(media, " ") {
		case "*", "*/*":
			a.mediaType, a.wildcards = mediaJSON, 2
		case "application/*":
			a.mediaType, a.wildcards = mediaJSON, 1
		case mediaJSON:
			a.mediaType = mediaJSON
		case mediaYAML:
			a.mediaType = mediaYAML
		default:
			continue
		}
		if a.parse(rest); a.parameters["stream"] == "" || a.parameters["stream"] == "watch" {
			accepted = append(accepted, a)
		}
	}
	slices.SortStableFunc(accepted, func(a, b acceptedMediaType) int {
		return cmp.Or(cmp.Compare(b.quality, a.quality), cmp.Compare(a.wildcards, b.wildcards))
	})
	return accepted
}

func (a *acceptedMediaType) parse(text string) {
	a.parameters = map[string]string{}
	for parameter := range strings.SplitSeq(text, ";") {
		name, value, ok := strings.Cut(parameter, "=")
		if !ok || value == "" || strings.Contains(value, "=") {
			continue
		}
		if name = strings.Trim(name, " "); name == "q" {
			a.quality, _ = strconv.ParseFloat(value, 32) // an invalid quality is 0
			continue
		}
		a.parameters[name] = strings.Trim(value, " ")
	}
}

type answerForm struct {
	mediaType string
	kind      formKind
	// version is the apiVersion of the answer. It is empty if kind is wholeObject.
	version string
}

type formKind int

const (
	wholeObject formKind = iota
	partialObject
	partialList
	tableForm
)

var formKinds = map[string]formKind{
	"PartialObjectMetadata": partialObject, "PartialObjectMetadataList": partialList, "Table": tableForm,
}

// negotiate returns the first supported form.
func negotiate(header http.Header) (answerForm, error) {
	for _, a := range parseAccept(header) {
		if !a.converts() {
			return answerForm{mediaType: a.mediaType}, nil
		}
		name, version, group := a.conversion()
		kind, isKnown := formKinds[name]
		if !isKnown || group != "meta.k8s.io" || version != "v1" && version != "v1beta1" {
			continue
		}
		return answerForm{mediaType: a.mediaType, kind: kind, version: group + "/" + version}, nil
	}
	return answerForm{}, errNotAcceptable(mediaJSON + ", " + mediaYAML)
}

// negotiateMediaType returns the first supported media type without a conversion.
func negotiateMediaType(header http.Header) (media string, err error) {
	for _, a := range parseAccept(header) {
		if !a.converts() {
			return a.mediaType, nil
		}
	}
	return "", errNotAcceptable(mediaJSON + ", " + mediaYAML)
}
