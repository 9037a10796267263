package server

import "strings"

func isPage(path string) bool   { return strings.HasPrefix(path, "/page/") }
func isStream(path string) bool { return path == "/page/api/stream" }
