package eval

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/crdcache/crdcache/internal/cli/output"
)

// errNoObjects is for files that hold nothing.
var errNoObjects = errors.New("the files hold no objects")

// run evaluates the path on every object. An object that cannot be read does not keep the others from being
// shown; the error joins what went wrong.
func (o *options) run(ctx context.Context) error {
	for _, w := range o.path.Warnings() {
		if !o.quiet {
			fmt.Fprintf(o.ErrOut, "warning: %s\n", w.Text())
		}
	}
	infos, err := o.read()
	if len(infos) == 0 {
		return errors.Join(err, noneUnless(err))
	}
	out := bufio.NewWriter(o.Out)
	for _, info := range infos {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			continue // cannot be: the builder was asked for unstructured objects
		}
		if shown := o.show(out, object, len(infos) > 1); shown != nil {
			return errors.Join(err, shown)
		}
	}
	if flushed := out.Flush(); flushed != nil {
		return errors.Join(err, fmt.Errorf("writing the output: %w", flushed))
	}
	return err
}

// read reads the objects of all files; lists are taken apart.
func (o *options) read() ([]*resource.Info, error) {
	builder := resource.NewLocalBuilder().Unstructured().Local().ContinueOnError().Flatten()
	files := o.files
	files.Filenames = nil
	for _, name := range o.files.Filenames {
		if name == "-" {
			builder.Stream(o.In, "standard input")
			continue
		}
		files.Filenames = append(files.Filenames, name)
	}
	if len(files.Filenames) > 0 {
		builder.FilenameParam(false, &files)
	}
	return builder.Do().Infos()
}

func noneUnless(err error) error {
	if err != nil {
		return nil
	}
	return errNoObjects
}

// show prints the values of one object, or explains why there is none.
func (o *options) show(out *bufio.Writer, object *unstructured.Unstructured, several bool) error {
	prefix := ""
	if several {
		prefix = describe(object) + "\t"
	}
	found := false
	var failed error
	o.path.Find(object.Object, func(v any) bool {
		found = true
		var text string
		if text, failed = value(v); failed != nil {
			return false
		}
		_, failed = fmt.Fprintf(out, "%s%s\n", prefix, text)
		return failed == nil
	})
	if failed != nil {
		return fmt.Errorf("writing the output: %w", failed)
	}
	if !found && !o.quiet {
		if err := out.Flush(); err != nil { // so that a person sees both in order
			return fmt.Errorf("writing the output: %w", err)
		}
		fmt.Fprintf(o.ErrOut, "%s: no value: %s\n", describe(object), output.Printable(explain(o.path, object.Object)))
	}
	return nil
}

// value gives a value as JSON in which every control character is escaped.
func value(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, r := range string(text) {
		if unicode.IsControl(r) { // JSON leaves some as they are
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String(), nil
}

// describe names an object as kubectl does: kind.group/name, with the namespace before the name.
func describe(object *unstructured.Unstructured) string {
	name := object.GetName()
	if ns := object.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return output.Printable(strings.ToLower(object.GroupVersionKind().GroupKind().String()) + "/" + name)
}
