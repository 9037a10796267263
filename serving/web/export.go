package web

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/display"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/web/internal/outline"
)

const (
	exportTimeout = 5 * time.Minute
	// exportBatch is the number of objects that are written within one writeTimeout.
	exportBatch = 100
)

// export writes the objects of a query as CSV with the given columns, or as YAML. If the browser is too slow,
// export ends the connection, so that the browser reports an incomplete file.
func (h *Handler) export(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), exportTimeout)
	defer cancel()
	r = r.WithContext(ctx)
	release, ok := h.limiter.acquire(ctx, h.user(r))
	if !ok {
		writeError(w, http.StatusServiceUnavailable, errors.New("too many concurrent requests; try again"))
		return
	}
	defer release()
	typ, writeObject, err := h.exporter(r)
	var table *tableKeys
	if err == nil {
		table, _, err = h.runQuery(r, typ)
	}
	if err != nil {
		writeError(w, statusOf(err), err)
		return
	}
	format := r.FormValue("format")
	w.Header().Set("Content-Type", map[string]string{"csv": "text/csv", "yaml": "application/yaml"}[format]+
		"; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q",
		typ.informer.GVR().GroupResource().String()+"."+format))
	controller, out := http.NewResponseController(w), bufio.NewWriter(w)
	for keys := range slices.Chunk(append([]string{""}, table.keys...), exportBatch) {
		_ = controller.SetWriteDeadline(time.Now().Add(writeTimeout)) // a test recorder has none
		for _, key := range keys {
			if err := writeObject(out, key); err != nil || ctx.Err() != nil {
				panic(http.ErrAbortHandler)
			}
		}
	}
	if out.Flush() != nil {
		panic(http.ErrAbortHandler)
	}
}

// exporter returns a function that writes one object. The first call has an empty key and writes the head.
func (h *Handler) exporter(r *http.Request) (*visibleType, func(w io.Writer, key string) error, error) {
	typ, err := h.requestedType(r)
	if err != nil {
		return nil, nil, err
	}
	switch r.FormValue("format") {
	case "yaml":
		return typ, func(w io.Writer, key string) error { return h.writeYAML(w, typ, key) }, nil
	case "csv":
		write, err := h.csvWriter(typ, r.Form["column"])
		return typ, write, err
	}
	return nil, nil, errors.New("the format must be csv or yaml")
}

func (h *Handler) writeYAML(w io.Writer, typ *visibleType, key string) error {
	object := h.content(typ, key)
	if object == nil {
		return nil // the head, or an object that has just been deleted
	}
	lines := []string{"---"}
	for _, line := range outline.Lines(object.Object) {
		text := strings.Repeat("  ", line.Depth)
		if line.Dash {
			text += "- "
		}
		if line.Key != "" {
			text += line.Key + ":"
			if line.Text != "" {
				text += " "
			}
		}
		lines = append(lines, text+line.Text)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// csvWriter returns a writer of rows with the given columns, or with all columns.
func (h *Handler) csvWriter(typ *visibleType, columnNumbers []string) (func(w io.Writer, key string) error,
	error) {
	definitions := h.tableColumns(typ)
	if len(columnNumbers) > 0 {
		var selected []crd.Column
		for _, number := range columnNumbers {
			i, err := strconv.Atoi(number)
			if err != nil || i < 0 || i >= len(definitions) {
				return nil, fmt.Errorf("there is no column %q", number)
			}
			selected = append(selected, definitions[i])
		}
		definitions = selected
	}
	columns := display.NewColumns(definitions)
	return func(w io.Writer, key string) error {
		record := []string{"Namespace", "Name"}
		if key == "" {
			for _, c := range definitions {
				record = append(record, c.Name)
			}
		} else if object := h.content(typ, key); object != nil {
			record[0], record[1] = naming.SplitKey(key)
			for _, c := range columns {
				record = append(record, rawCell(c.Value(object.Object)))
			}
		} else {
			return nil // it has just been deleted
		}
		for i, text := range record {
			record[i] = escapeFormula(text)
		}
		out := csv.NewWriter(w)
		_ = out.Write(record) // reported by Error
		out.Flush()
		return out.Error()
	}, nil
}

// escapeFormula marks texts that a spreadsheet would run as a formula. It does not change numbers.
func escapeFormula(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err != nil && text != "" && strings.ContainsAny(text[:1], "=+-@\t\r") {
		return "'" + text
	}
	return text
}
