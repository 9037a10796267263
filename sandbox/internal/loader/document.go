package loader

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Document is one object of a manifest.
type Document struct {
	Object *unstructured.Unstructured
	// File and Number, which starts at 1, locate the document. Items of a List have the number of the List.
	File   string
	Number int
}

func (d Document) String() string {
	o := d.Object
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return fmt.Sprintf("%s: document %d (%s %s)", d.File, d.Number, o.GetKind(), name)
}

// ReadPaths reads all objects in files and, recursively, in directories. In directories it reads the files
// that end in .yaml, .yml or .json, in lexical order. The error joins the errors of all documents.
func ReadPaths(paths []string) ([]Document, error) {
	var docs []Document
	var errs []error
	for _, path := range paths {
		files, err := manifestFiles(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, file := range files {
			found, err := readFile(file)
			docs = append(docs, found...)
			errs = append(errs, err)
		}
	}
	return docs, errors.Join(errs...)
}

func manifestFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
			files = append(files, file)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no .yaml, .yml or .json file in it", path)
	}
	return files, err
}

func readFile(file string) ([]Document, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parse(file, data)
}

// parse splits data into documents. It reports all broken documents.
func parse(file string, data []byte) ([]Document, error) {
	chunks, err := split(file, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var docs []Document
	var errs []error
	for i, chunk := range chunks {
		objects, err := decode(chunk)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: document %d: %w", file, i+1, err))
			continue
		}
		for _, object := range objects {
			docs = append(docs, Document{Object: object, File: file, Number: i + 1})
		}
	}
	return docs, errors.Join(errs...)
}

func split(file string, data []byte) ([][]byte, error) {
	var chunks [][]byte
	if filepath.Ext(file) == ".json" {
		decoder := json.NewDecoder(bytes.NewReader(data))
		for {
			var chunk json.RawMessage
			err := decoder.Decode(&chunk)
			if errors.Is(err, io.EOF) {
				return chunks, nil
			}
			if err != nil {
				return nil, fmt.Errorf("document %d: %w", len(chunks)+1, err)
			}
			chunks = append(chunks, chunk)
		}
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		chunk, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return chunks, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(chunks)+1, err)
		}
		chunks = append(chunks, chunk)
	}
}

// decode returns the objects of one document: none if it is empty, several if it is a List.
func decode(chunk []byte) ([]*unstructured.Unstructured, error) {
	asJSON, err := yaml.YAMLToJSON(chunk)
	if err != nil {
		if bytes.Contains(chunk, []byte("{{")) {
			return nil, fmt.Errorf("%w (it looks like a template: render it first)", err)
		}
		return nil, err
	}
	if bytes.Equal(bytes.TrimSpace(asJSON), []byte("null")) {
		return nil, nil
	}
	var content any
	// Unlike encoding/json, this function decodes integers as int64.
	if err := utilyaml.Unmarshal(asJSON, &content); err != nil {
		return nil, err
	}
	fields, ok := content.(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	return expand(&unstructured.Unstructured{Object: fields})
}

func expand(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return nil, errors.New("apiVersion and kind are required")
	}
	if strings.HasSuffix(object.GetKind(), "List") && object.IsList() {
		var objects []*unstructured.Unstructured
		err := object.EachListItem(func(item runtime.Object) error {
			found, err := expand(item.(*unstructured.Unstructured))
			objects = append(objects, found...)
			return err
		})
		return objects, err
	}
	// YAML does not read an unquoted n, y, on or 1 as a string.
	for _, field := range []string{"name", "namespace"} {
		if _, _, err := unstructured.NestedString(object.Object, "metadata", field); err != nil {
			return nil, fmt.Errorf("%s: metadata.%s is not a string, quote it: %w",
				object.GetKind(), field, err)
		}
	}
	if object.GetName() == "" {
		return nil, fmt.Errorf("%s: metadata.name is required", object.GetKind())
	}
	return []*unstructured.Unstructured{object}, nil
}
