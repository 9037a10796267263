package mcp

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // of the descriptions
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/naming"
)

// exitIncomplete is the exit code of a verb that has not read everything. minRow is the number of bytes of a
// short row, and maxPage the number of objects that are read again for the columns of the API server.
const (
	callTimeout, maxCalls, exitIncomplete = 50 * time.Second, 4, 5
	minRow, maxPage                       = 24, 100
	clusterPath                           = ".metadata.annotations['" + print.ClusterAnnotation + "']"
)

//go:embed tools.json
var definitions []byte
var betweenCells = regexp.MustCompile(`  +`)

// args are the arguments of all tools. definitions describes them.
type args struct {
	Match, Type, Namespace, Name, Labels, Where, CEL, Index, SortBy, Since string
	MaxBytes, Skip                                                         int
	Columns, GroupBy, Measures, Paths, Types                               []string
}

func (o *verb) newServer() *sdk.Server {
	var d struct {
		Instructions       string
		Common, Properties map[string]any
		Tools              []struct{ Name, Verb, Arguments, Description string }
	}
	_ = json.Unmarshal(definitions, &d) // it is part of the program: TestTools
	server := sdk.NewServer(&sdk.Implementation{Name: "crdcache", Version: o.version},
		&sdk.ServerOptions{Instructions: d.Instructions, Capabilities: &sdk.ServerCapabilities{}})
	slots := make(chan struct{}, maxCalls)
	for _, t := range d.Tools {
		properties, required := maps.Clone(d.Common), []string{}
		for name := range strings.FieldsSeq(t.Arguments) {
			name, isRequired := strings.CutSuffix(name, "!")
			if properties[name] = d.Properties[name]; isRequired {
				required = append(required, name)
			}
		}
		schema := map[string]any{"type": "object", "properties": properties, "required": required,
			"additionalProperties": false}
		hints := &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)}
		tool := &sdk.Tool{Name: t.Name, Description: t.Description, InputSchema: schema, Annotations: hints}
		sdk.AddTool(server, tool, func(ctx context.Context, request *sdk.CallToolRequest,
			valid map[string]any) (*sdk.CallToolResult, any, error) {
			var in args // encoding/json matches the names in any case
			started, text, err := time.Now(), "", json.Unmarshal([]byte(jsontext.Compact(valid)), &in)
			if err == nil {
				report := &session.Report{}
				stop := notifyProgress(ctx, request, report)
				text, err = o.call(ctx, slots, report, t.Name, strings.Fields(t.Verb), in)
				stop()
			}
			o.logger.Info("call", "tool", t.Name, "arguments", valid, "bytes", len(text),
				"error", fmt.Sprint(err), "ms", time.Since(started).Milliseconds())
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, err
		})
	}
	return server
}

// notifyProgress reports the progress of a call each second to a client that wants it, until stop is called.
func notifyProgress(ctx context.Context, request *sdk.CallToolRequest, report *session.Report) (stop func()) {
	token := request.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var notifier sync.WaitGroup
	notifier.Go(func() { // ended by ctx
		for second := 1; ; second++ {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return
			}
			_ = request.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token,
				Progress: float64(second), Message: report.Progress()}) // a client that is gone needs none
		}
	})
	return func() {
		cancel()
		notifier.Wait()
	}
}

// call waits for a slot of the session, runs the verb of a tool, and returns the answer. If the verb has not
// read everything, an answer without rows is an error.
func (o *verb) call(ctx context.Context, slots chan struct{}, report *session.Report, tool string,
	verb []string, in args) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout,
		fmt.Errorf("unknown: no answer within %v; narrow the question, or ask again later", callTimeout))
	defer cancel()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	in.Namespace = cmp.Or(in.Namespace, o.namespace)
	if o.namespace != "" && in.Namespace != o.namespace {
		return "", fmt.Errorf("only the namespace %s is read: restart without --namespace", o.namespace)
	}
	budget := min(max(cmp.Or(in.MaxBytes, defaultBudget), minBudget), maxBudget)
	var out, errOut bytes.Buffer
	report.Skip, report.Limit = in.Skip, budget/minRow
	if len(in.Columns) == 0 {
		report.Limit = min(report.Limit, maxPage)
	}
	ctx = o.shared.Context(ctx, report)
	a := &answer{}
	if len(in.Columns) > 0 && o.flags.SelectsContexts() {
		in.Columns = append([]string{clusterPath}, in.Columns...)
	}
	if tool == "changes" {
		rows, token, err := o.changes(ctx, in, genericiooptions.IOStreams{Out: &out, ErrOut: &errOut})
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			return "", errors.New(shorten(err.Error(), budget, 1).(string))
		}
		a.Complete, a.Since, a.Columns = true, token, changeColumns
		a.setNotes(errOut.String(), budget)
		a.setFreshness(report, o.readsFiles)
		a.setRows(rows[min(in.Skip, len(rows)):], in.Skip, len(rows), budget)
		return jsontext.Compact(a), nil
	}
	code := o.runVerb(ctx, o.commandLine(tool, verb, in), &out, &errOut)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	err := o.checkSecrets(in, report.Types)
	if err != nil {
		return "", err
	}
	a.Complete = code == 0
	a.setNotes(errOut.String(), budget)
	a.setFreshness(report, o.readsFiles)
	unknown := errors.New(shorten(strings.Join(a.Unknown, "; "), budget, 1).(string))
	if !a.Complete && (code != exitIncomplete && tool != "related" || out.Len() == 0) {
		return "", unknown
	}
	switch {
	case tool == "related":
		if err = o.setEvents(ctx, a, report, out.Bytes(), in, budget/4); err == nil {
			a.setFreshness(report, o.readsFiles)
			err = o.setObject(a, out.Bytes(), nil, budget)
		}
	case tool == "get":
		err = o.setObject(a, out.Bytes(), in.Paths, budget)
	case tool == "explain":
		a.setData(out.String(), budget)
	default:
		var rows [][]any
		if a.Columns, rows, err = readRows(out.Bytes(), in.Columns, tool == "types"); len(rows) == 0 && !a.Complete {
			err = unknown
		}
		total := cmp.Or(report.Objects, len(rows))
		if report.Objects == 0 {
			rows = rows[min(in.Skip, len(rows)):]
		}
		isTypes := tool == "types" && len(rows) > 0
		if isTypes {
			a.Columns = append(a.Columns, "OBJECTS")
			for i := range rows {
				rows[i] = append(rows[i], unknownCount)
			}
		}
		a.setRows(rows, in.Skip, total, budget)
		switch {
		case isTypes:
			o.countObjects(ctx, a.Columns, rows[:len(a.Rows)], in.Namespace)
			a.setRows(rows, in.Skip, total, budget)
		case tool == "query" && a.Skip > 0 && in.Namespace == "" && o.shared != nil:
			a.Namespaces = o.countNamespaces(ctx, verb, in, budget/3)
			a.setRows(rows, in.Skip, total, budget)
		}
	}
	return jsontext.Compact(a), err
}

// commandLine returns the command line of a verb. A value is part of one argument, so that it cannot be
// another flag.
func (o *verb) commandLine(tool string, verb []string, in args) []string {
	line := slices.Concat(verb, o.given)
	add := func(flag string, values ...string) {
		for _, value := range values {
			if value != "" {
				line = append(line, "--"+flag+"="+value)
			}
		}
	}
	switch {
	case in.Namespace != "":
		add("namespace", in.Namespace)
	case verb[0] == "query" || verb[0] == "tree":
		add("all-namespaces", "true")
	}
	if verb[0] == "resources" { // it has no flags for caches
		line = slices.DeleteFunc(line, func(flag string) bool {
			return strings.HasPrefix(flag, "--cache=") || strings.HasPrefix(flag, "--verbose=")
		})
	}
	if len(in.Columns) > 0 {
		line = append(line, "--output=jsonl") // the last one counts
	}
	conditions := []string{in.Index, in.Where, in.CEL, in.SortBy}
	for i, flag := range []string{"index", "where", "where-cel", "sort-by"} {
		add(flag, conditions[i])
	}
	add("selector", in.Labels)
	add("types", in.Types...)
	add("group-by", in.GroupBy...)
	add("compute", in.Measures...)
	if tool == "aggregate" && len(in.GroupBy)+len(in.Measures) == 0 {
		add("count", "true")
	}
	operand := cmp.Or(in.Match, in.Type)
	if tool == "get" || tool == "related" {
		operand += "/" + in.Name // a name alone could be that of a type
	}
	if operand == "" {
		return line
	}
	return append(line, "--", operand)
}

// checkSecrets rejects answers about the types that a verb has read if they could reveal values of Secrets.
func (o *verb) checkSecrets(in args, types []schema.GroupResource) error {
	if !slices.ContainsFunc(types, o.redactor.Redacts) {
		return nil
	}
	conditions := []string{in.Index, in.Where, in.CEL, in.SortBy}
	for _, text := range slices.Concat(conditions, in.GroupBy, in.Measures, in.Columns) {
		if text != "" && text != ".type" && text != ".metadata.namespace" {
			return errors.New("this could reveal values of Secrets: use namespace and labels, or start with --show-secrets")
		}
	}
	return nil
}

// readRows reads the output of a verb: objects as lines of JSON if there are paths, a table without empty
// cells, or CSV.
func readRows(text []byte, paths []string, isTable bool) (columns []string, rows [][]any, err error) {
	var records [][]string
	switch {
	case len(paths) > 0:
		compiled := make([]*jsonpath.Path, len(paths))
		for i, path := range paths {
			if compiled[i], err = jsonpath.Compile(path); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", path, err)
			}
		}
		for line := range bytes.Lines(text) {
			object := unstructured.Unstructured{}
			if err := json.Unmarshal(line, &object.Object); err != nil {
				return nil, nil, err
			}
			row := []any{object.GetNamespace(), object.GetName()}
			for _, path := range compiled {
				row = append(row, find(path, object.Object))
			}
			rows = append(rows, row)
		}
		return append([]string{"NAMESPACE", "NAME"}, paths...), rows, nil
	case isTable:
		for line := range strings.Lines(string(text)) {
			records = append(records, betweenCells.Split(strings.TrimSpace(line), -1))
		}
	default:
		records, err = csv.NewReader(bytes.NewReader(text)).ReadAll()
	}
	for _, record := range records {
		rows = append(rows, naming.Map(record, func(cell string) any { return cell }))
	}
	if len(records) > 0 {
		columns, rows = records[0], rows[1:]
	}
	return columns, rows, err
}

// find returns the value of a path, or a list of several or no values.
func find(path *jsonpath.Path, object map[string]any) any {
	values := path.Append(nil, object)
	if len(values) == 1 {
		return values[0]
	}
	return values
}

// setObject sets an object or a tree, or the list of those in several namespaces or clusters, or paths of
// them, without managedFields, last-applied and the values of Secrets.
func (o *verb) setObject(a *answer, text []byte, paths []string, budget int) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	if list, _ := value.(map[string]any); list["kind"] == "List" {
		value = list["items"]
	}
	objects, isList := value.([]any)
	if !isList {
		objects = []any{value}
	} else if len(paths) > 0 {
		paths = append(paths, ".metadata.namespace", clusterPath)
	}
	for i := range objects {
		object, _ := objects[i].(map[string]any)
		delete(object, "read") // types of a tree; the notes have the others
		delete(object, "notRead")
		unstructured.RemoveNestedField(object, "metadata", "managedFields")
		unstructured.RemoveNestedField(object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
		if object["kind"] == "Secret" && object["apiVersion"] == "v1" {
			object = o.redactor.Object(schema.GroupResource{Resource: "secrets"}, object)
		}
		objects[i] = object
		found := map[string]any{}
		for _, text := range paths {
			path, err := jsonpath.Compile(text)
			if err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
			found[text] = find(path, object)
			objects[i] = found
		}
	}
	if !isList {
		value = objects[0]
	}
	a.setData(value, budget)
	return nil
}
