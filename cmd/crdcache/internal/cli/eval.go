package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/filesource"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/internal/manifest"
)

type evalVerb struct {
	genericiooptions.IOStreams
	files     []string
	recursive bool
	quiet     bool

	expr expression
}

func newEval(streams genericiooptions.IOStreams) *cobra.Command {
	o := &evalVerb{IOStreams: streams}
	cmd := &cobra.Command{
		Use:        "eval PATH|CONDITION -f FILE [flags]",
		SuggestFor: []string{"jsonpath", "jq"},
		Short:      "Evaluate a path or condition on the objects in files",
		Long: "Evaluate a path or a condition of an index config, or of --where, on the objects\n" +
			"in files. Values are printed as JSON, one per line, after the object's name if\n" +
			"there are several objects. Missing values are explained on stderr.\n\n" +
			"A condition such as '@.spec.replicas > 4' prints true or false.",
		Annotations: detailsAnnotation("An expression that is both a path and a condition is a path: @.spec.paused\n" +
			"prints the value, and !!@.spec.paused prints whether there is one."),
		Example: "  crdcache eval .spec.issuerRef.name -f certificate.yaml\n" +
			"  kubectl get cert -o yaml | crdcache eval '.status.conditions[*].type' -f -\n" +
			"  crdcache eval '@.spec.replicas > 4 && !@.spec.paused' -f workloads/",
		Args:              session.ExactlyOne("path or condition", ".metadata.name -f object.yaml"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runE(o),
	}
	set := cmd.Flags()
	set.StringSliceVarP(&o.files, "filename", "f", nil,
		"File, directory or snapshot; - is stdin. It contains objects in YAML or JSON. May be repeated.")
	set.BoolVarP(&o.recursive, "recursive", "R", false, "Read directories with all subdirectories.")
	set.BoolVar(&o.quiet, "quiet", false, "Do not explain missing values.")
	return cmd
}

func (o *evalVerb) complete(_ *cobra.Command, args []string) (err error) {
	if len(o.files) == 0 {
		return session.Usagef("name a file with --filename (-f), or give - to read objects from standard input")
	}
	o.expr, err = compile(args[0])
	return err
}

var errNoObjects = errors.New("the files contain no objects")

// run evaluates the expression on every object. It continues after files that cannot be read, and returns the
// joined errors.
func (o *evalVerb) run(ctx context.Context) error {
	for _, w := range o.expr.Warnings() {
		o.warn(w.Text())
	}
	out := bufio.NewWriter(o.Out)
	err := o.printAll(ctx, out)
	// also prints the output before an error
	if flushErr := out.Flush(); flushErr != nil && err == nil {
		return fmt.Errorf("write the output: %w", flushErr)
	}
	return err
}

func (o *evalVerb) warn(text string) {
	if !o.quiet {
		print.Warnf(o.ErrOut, "%s", text)
	}
}

// printAll evaluates each object as soon as it is read. It holds back the first object until it has read a
// second one, because objects are named only if there are several.
func (o *evalVerb) printAll(ctx context.Context, out *bufio.Writer) error {
	var first *unstructured.Unstructured
	objects := 0
	options := manifest.ReadOptions{Paths: o.files, Flat: !o.recursive, In: o.In,
		Warn: func(p *manifest.Problem) { o.warn(p.Error()) }}
	err := filesource.ReadFiles(ctx, options, nil, func(object *unstructured.Unstructured,
		_ func(error)) error {
		switch objects++; objects {
		case 1:
			first = object
			return nil
		case 2:
			if err := o.printValues(out, first, true); err != nil {
				return err
			}
		}
		return o.printValues(out, object, true)
	})
	switch {
	case objects == 0 && err == nil:
		return errNoObjects
	case objects == 1 && ctx.Err() == nil:
		return errors.Join(o.printValues(out, first, false), err)
	}
	return err
}

// printValues prints the values of the expression for one object, and explains missing values.
func (o *evalVerb) printValues(out *bufio.Writer, object *unstructured.Unstructured, withName bool) error {
	prefix := ""
	if withName {
		prefix = describeObject(object) + "\t"
	}
	var writeErr error
	o.expr.find(object.Object, func(v any) bool {
		var text string
		if text, writeErr = formatValue(v); writeErr != nil {
			return false
		}
		_, writeErr = fmt.Fprintf(out, "%s%s\n", prefix, text)
		return writeErr == nil
	})
	if writeErr != nil {
		return fmt.Errorf("write the output: %w", writeErr)
	}
	if o.quiet {
		return nil
	}
	for _, explanation := range o.expr.explainMissing(object.Object) {
		if err := out.Flush(); err != nil { // keeps the order of stdout and stderr
			return fmt.Errorf("write the output: %w", err)
		}
		fmt.Fprintf(o.ErrOut, "%s\n", print.OneSafeLine(describeObject(object)+": "+explanation))
	}
	return nil
}

// formatValue returns a value as JSON with all control characters escaped.
func formatValue(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, r := range string(text) {
		if unicode.IsControl(r) { // JSON does not escape all of them
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String(), nil
}

// describeObject returns KIND.GROUP/NAMESPACE/NAME.
func describeObject(object *unstructured.Unstructured) string {
	kind := strings.ToLower(object.GroupVersionKind().GroupKind().String())
	return print.Printable(kind + "/" + cache.MetaObjectToName(object).String())
}
