package session

import (
	"strings"

	"github.com/spf13/pflag"
)

// SeparateLines lets line breaks separate the elements of flags of type stringSlice, like commas. The output
// of commands such as kubectl then is a list. pflag reads the first line and ignores the others.
func SeparateLines(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "stringSlice" && f.DefValue == "[]" {
			f.Value, f.DefValue = lineList{f.Value}, "" // which help does not print
		}
	})
}

type lineList struct{ pflag.Value }

func (l lineList) Set(text string) error {
	isBreak := func(r rune) bool { return r == '\n' || r == '\r' }
	return l.Value.Set(strings.Join(strings.FieldsFunc(text, isBreak), ","))
}
