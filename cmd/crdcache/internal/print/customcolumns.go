package print

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// noValue is kubectl's text for a column without a value.
const noValue = "<none>"

type customColumn struct {
	header string
	path   *jsonpath.JSONPath
}

// customColumnsPrinter prints like kubectl get -o custom-columns. It buffers the cells, not the objects.
type customColumnsPrinter struct {
	columns []customColumn
	out     TabWriter
	// pendingHeader is printed before the first object. It is nil if no header remains to be printed.
	pendingHeader []string
}

// parseCustomColumns parses "HEADER:PATH,HEADER:PATH".
func parseCustomColumns(spec string, w io.Writer, noHeaders bool) (*customColumnsPrinter, error) {
	var headers, paths []string
	for part := range strings.SplitSeq(spec, ",") {
		header, path, ok := strings.Cut(part, ":")
		if !ok {
			return nil, fmt.Errorf("%q is not a custom column: write HEADER:PATH, as in NAME:.metadata.name", part)
		}
		headers, paths = append(headers, header), append(paths, path)
	}
	return newCustomColumnsPrinter(headers, paths, w, noHeaders)
}

// readCustomColumnsFile reads a file with one line of headers and one line of paths.
func readCustomColumnsFile(name string, w io.Writer, noHeaders bool) (*customColumnsPrinter, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the custom columns: %w", err)
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	var lines [2][]string
	for i := range lines {
		if !scanner.Scan() {
			err := errors.Join(scanner.Err(), errors.New("the file needs a line of headers and a line of paths"))
			return nil, fmt.Errorf("read the custom columns of %s: %w", name, err)
		}
		lines[i] = strings.Fields(scanner.Text())
	}
	if len(lines[0]) != len(lines[1]) {
		return nil, fmt.Errorf("read the custom columns of %s: there are %d headers and %d paths", name,
			len(lines[0]), len(lines[1]))
	}
	return newCustomColumnsPrinter(lines[0], lines[1], w, noHeaders)
}

func newCustomColumnsPrinter(headers, paths []string, w io.Writer,
	noHeaders bool) (*customColumnsPrinter, error) {
	p := &customColumnsPrinter{out: printers.GetNewTabWriter(w)}
	for i, text := range paths {
		path := jsonpath.New(headers[i]).AllowMissingKeys(true)
		expression, err := completePath(text)
		if err != nil {
			return nil, fmt.Errorf("a custom column: %w", err)
		}
		if err := path.Parse(expression); err != nil {
			return nil, fmt.Errorf("the path %q of a custom column: %w", text, err)
		}
		p.columns = append(p.columns, customColumn{headers[i], path})
	}
	if !noHeaders {
		p.pendingHeader = headers
	}
	return p, nil
}

// completePath adds {} and the first dot, which kubectl allows users to omit.
func completePath(text string) (string, error) {
	inner := strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
	if strings.ContainsAny(inner, "{}") || strings.HasPrefix(text, "{") != strings.HasSuffix(text, "}") {
		return "", fmt.Errorf("%q is not one path: write, for example, .metadata.name", text)
	}
	if text == "" {
		return "", nil
	}
	return "{." + strings.TrimPrefix(inner, ".") + "}", nil
}

func (p *customColumnsPrinter) Print(o Object) error {
	obj, err := o.decode()
	if err != nil {
		return err
	}
	p.writeHeader()
	row := make([]string, len(p.columns))
	for i, c := range p.columns {
		results, err := c.path.FindResults(obj.Object)
		if err != nil {
			return fmt.Errorf("print %s: column %s: %w", describeObject(obj), c.header, err)
		}
		var values []string
		for _, result := range results {
			for _, value := range result {
				values = append(values, printers.EscapeTerminal(fmt.Sprint(value.Interface())))
			}
		}
		if len(results) == 0 || len(results[0]) == 0 {
			values = append([]string{noValue}, values...)
		}
		row[i] = printable(strings.Join(values, ","))
	}
	_, err = fmt.Fprintln(p.out, ClusterPrefix(o.Cluster)+strings.Join(row, "\t"))
	return err
}

// ShowClusters adds the header CLUSTER to custom columns. It does nothing for other printers.
func ShowClusters(printer Printer) {
	if p, ok := printer.(*customColumnsPrinter); ok && p.pendingHeader != nil {
		p.pendingHeader = slices.Insert(p.pendingHeader, 0, "CLUSTER")
	}
}

// writeHeader writes the header once. The tab writer keeps its first error for Flush.
func (p *customColumnsPrinter) writeHeader() {
	if p.pendingHeader != nil {
		fmt.Fprintln(p.out, strings.Join(p.pendingHeader, "\t"))
		p.pendingHeader = nil
	}
}

// Flush implements flusher. Later rows never make a column narrower.
func (p *customColumnsPrinter) Flush() error {
	p.writeHeader()
	return p.out.Flush()
}

func (p *customColumnsPrinter) Close() error { return p.Flush() }
