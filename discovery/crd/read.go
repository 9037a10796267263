package crd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// DocumentError says where in a file a definition could not be read.
type DocumentError struct {
	// File is the name that was given, a path for ReadFile.
	File string
	// Document counts the documents of the file from 1. Item counts the items of a List from 1, and is 0
	// for a document that is no List.
	Document, Item int
	Err            error
}

func (e *DocumentError) Error() string {
	if e.Item > 0 {
		return fmt.Sprintf("%s: document %d, item %d: %v", e.File, e.Document, e.Item, e.Err)
	}
	return fmt.Sprintf("%s: document %d: %v", e.File, e.Document, e.Err)
}

// Unwrap returns what is wrong with the document.
func (e *DocumentError) Unwrap() error { return e.Err }

// ErrNone is the error for a file without any definition.
var ErrNone = errors.New("no CustomResourceDefinition found")

// Fetch gets one definition, with schemas, from a cluster.
func Fetch(ctx context.Context, client dynamic.Interface, gr schema.GroupResource) (*Definition, error) {
	object, err := client.Resource(GVR).Get(ctx, gr.String(), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get CustomResourceDefinition %s: %w", gr, err)
	}
	return FromUnstructured(object.Object)
}

// ReadFile is Read of the file at path.
func ReadFile(path string) ([]*Definition, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Read returns the definitions in YAML or JSON: any number of documents, each an object or a List of
// objects. Objects that are not CustomResourceDefinitions are passed over, for files often hold the rest
// of a program too; a definition of the removed v1beta1 is an error. All that can be read is returned
// together with the joined errors, each a *DocumentError that names the source as file. Without any
// definition and error, the error is ErrNone.
func Read(r io.Reader, file string) ([]*Definition, error) {
	var out []*Definition
	var problems []error
	number := 0
	for text, err := range documents(r) {
		number++
		if err != nil {
			problems = append(problems, &DocumentError{File: file, Document: number, Err: err})
			break
		}
		found, errs := readDocument(text)
		out = append(out, found...)
		for _, e := range errs {
			e.File, e.Document = file, number
			problems = append(problems, e)
		}
	}
	if len(out) == 0 && len(problems) == 0 {
		return nil, fmt.Errorf("%s: %w", file, ErrNone)
	}
	return out, errors.Join(problems...)
}

// documents cuts a stream at the separators of YAML, and where JSON objects follow each other.
func documents(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		reader := utilyaml.NewYAMLReader(bufio.NewReader(r))
		for {
			text, err := reader.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, document := range splitJSON(text) {
				if !yield(document, nil) {
					return
				}
			}
		}
	}
}

// splitJSON cuts JSON objects that follow each other, and leaves everything else whole: text that begins
// like JSON may still be YAML.
func splitJSON(text []byte) [][]byte {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return [][]byte{text}
	}
	var out [][]byte
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var object json.RawMessage
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil && len(out) == 0:
			return [][]byte{text}
		case err != nil:
			return append(out, text[decoder.InputOffset():])
		}
		out = append(out, object)
	}
}

// header is what tells kinds of documents apart.
type header struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

func readDocument(text []byte) ([]*Definition, []*DocumentError) {
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, []*DocumentError{{Err: err}}
	}
	if bytes.Equal(data, []byte("null")) { // empty, or comments only
		return nil, nil
	}
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, []*DocumentError{{Err: fmt.Errorf("not a Kubernetes object: %w", err)}}
	}
	if h.Kind != "List" && h.Kind != "CustomResourceDefinitionList" {
		d, err := readObject(h, data)
		if err != nil {
			return nil, []*DocumentError{{Err: err}}
		}
		return d, nil
	}
	var out []*Definition
	var problems []*DocumentError
	for i, raw := range h.Items {
		item := header{APIVersion: h.APIVersion, Kind: "CustomResourceDefinition"}
		if h.Kind == "List" {
			item = header{}
		}
		// The items of a typed list need not repeat kind and version.
		err := json.Unmarshal(raw, &item)
		var d []*Definition
		if err == nil {
			d, err = readObject(item, raw)
		}
		if err != nil {
			problems = append(problems, &DocumentError{Item: i + 1, Err: err})
		}
		out = append(out, d...)
	}
	return out, problems
}

// readObject returns one definition, or none when the object is something else.
func readObject(h header, data []byte) ([]*Definition, error) {
	if h.Kind != "CustomResourceDefinition" {
		return nil, nil
	}
	if h.APIVersion == "apiextensions.k8s.io/v1beta1" {
		return nil, fmt.Errorf("%w: v1beta1 was removed in Kubernetes 1.22, convert it to v1", ErrNotCRD)
	}
	var w wire[wireFullVersion]
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("decode CustomResourceDefinition: %w", err)
	}
	w.APIVersion, w.Kind = h.APIVersion, h.Kind
	d, err := define(&w, wireFullVersion.version)
	if err != nil {
		return nil, err
	}
	return []*Definition{d}, nil
}
