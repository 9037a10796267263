package crd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/internal/manifest"
)

// DocumentError is an error of one definition in a file.
type DocumentError struct {
	// File is the name of the source, a path for ReadFile.
	File string
	// Line is the line, from 1, at which the document starts or the error occurs.
	Line int
	// Document is the number of the document in the file from 1. Item is the number of the item in a List
	// from 1, and 0 for other documents.
	Document, Item int
	Err            error
}

func (e *DocumentError) Error() string {
	if e.Item > 0 {
		return fmt.Sprintf("%s: document %d, item %d: %v", e.File, e.Document, e.Item, e.Err)
	}
	return fmt.Sprintf("%s: document %d: %v", e.File, e.Document, e.Err)
}

// Unwrap returns the cause.
func (e *DocumentError) Unwrap() error { return e.Err }

// ErrNoDefinitions is the error for a file without any definition.
var ErrNoDefinitions = errors.New("no CustomResourceDefinition found")

// Fetch gets one definition, with schemas, from a cluster.
func Fetch(ctx context.Context, client dynamic.Interface, gr schema.GroupResource) (*Definition, error) {
	object, err := client.Resource(GVR).Get(ctx, gr.String(), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get CustomResourceDefinition %s: %w", gr, err)
	}
	return FromUnstructured(object.Object)
}

// ReadFile calls Read with the file at path.
func ReadFile(path string) ([]*Definition, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Read returns the definitions in YAML or JSON. The text may be compressed with gzip or zstd, and have any
// number of documents, each an object or a List of objects. Read ignores other objects; a definition of the
// removed v1beta1 is an error. It returns all readable definitions together with the joined errors: a
// *DocumentError for each invalid object, and the error of reading r. Errors name the source as file. If
// there is neither a definition nor an error, it returns ErrNoDefinitions.
func Read(r io.Reader, file string) ([]*Definition, error) {
	var out []*Definition
	var problems []error
	err := manifest.Read(context.Background(), r, func(e manifest.Entry) bool {
		d, err := readEntry(e)
		if d != nil {
			out = append(out, d)
		}
		if err != nil {
			problems = append(problems, &DocumentError{File: file, Line: e.Line, Document: e.Document,
				Item: e.Item, Err: err})
		}
		return true
	})
	if err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", file, err))
	}
	if len(out) == 0 && len(problems) == 0 {
		return nil, fmt.Errorf("%s: %w", file, ErrNoDefinitions)
	}
	return out, errors.Join(problems...)
}

// readEntry returns the definition of an entry, or nil for another object.
func readEntry(e manifest.Entry) (*Definition, error) {
	if errors.Is(e.Err, manifest.ErrNoKind) {
		return nil, nil
	}
	if e.Err != nil {
		return nil, e.Err
	}
	return readObject(e)
}

// readObject returns the definition of an object, or nil for another kind.
func readObject(e manifest.Entry) (*Definition, error) {
	if e.Kind != "CustomResourceDefinition" {
		return nil, nil
	}
	if e.APIVersion == "apiextensions.k8s.io/v1beta1" {
		return nil, fmt.Errorf("%w: v1beta1 was removed in Kubernetes 1.22, convert it to v1", ErrNotCRD)
	}
	var w wireDefinition[wireFullVersion]
	if err := json.Unmarshal(e.Data, &w); err != nil {
		return nil, fmt.Errorf("decode CustomResourceDefinition: %w", err)
	}
	w.APIVersion, w.Kind = e.APIVersion, e.Kind
	return convertDefinition(&w, wireFullVersion.version)
}
