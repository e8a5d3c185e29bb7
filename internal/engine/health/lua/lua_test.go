// SPDX-License-Identifier: Apache-2.0

package lua

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/weir-gitops/weir/internal/engine/health"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func check(t testing.TB, script string) *Check {
	t.Helper()
	c, err := Compile("check.lua", script, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// conditions is a check of the usual kind.
const conditions = `
hs = {}
if obj.status ~= nil then
  if obj.status.conditions ~= nil then
    for i, condition in ipairs(obj.status.conditions) do
      if condition.type == "Ready" and condition.status == "False" then
        hs.status = "Degraded"
        hs.message = condition.message .. " (" .. i .. ")"
        return hs
      end
      if condition.type == "Ready" and condition.status == "True" then
        hs.status = "Healthy"
        hs.message = string.format("%s is %5.2f", condition.type, 1)
        return hs
      end
    end
  end
end
hs.status = "Progressing"
hs.message = "Waiting"
return hs
`

func TestConditions(t *testing.T) {
	c := check(t, conditions)
	for text, want := range map[string]health.HealthStatus{
		`{}`: {Status: health.Progressing, Message: "Waiting"},
		`{status: {conditions: [{type: A}, {type: Ready, status: "False", message: broken}]}}`: {Status: health.Degraded, Message: "broken (2)"},
		`{status: {conditions: [{type: Ready, status: "True"}]}}`:                              {Status: health.Healthy, Message: "Ready is  1.00"},
	} {
		got, err := c.GetResourceHealth(object(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// evaluate gives what an expression is, as text.
func evaluate(t *testing.T, expression string) string {
	t.Helper()
	script := `
		local function show(...)
			local out = {}
			for i = 1, select("#", ...) do out[i] = tostring((select(i, ...))) end
			return table.concat(out, "|")
		end
		return {status = "Healthy", message = show(` + expression + `)}`
	got, err := check(t, script).GetResourceHealth(object(t, `{a: {b: [1, x, true]}, num: 3}`))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return got.Message
}

func TestLanguage(t *testing.T) {
	for expression, want := range map[string]string{
		`obj.a.b[2], obj.a.b[3], #obj.a.b, obj.num + 1, obj.none`: "x|true|3|4|nil",
		`"a" .. 1 .. "b"`: "a1b",
		`("x"):rep(3), ("abc"):sub(2), ("abc"):sub(-2, -2)`:                    "xxx|bc|b",
		`string.find("hello world", "o w")`:                                    "5|7",
		`string.find("hello", "l+")`:                                           "3|4",
		`string.find("a.b", ".", 1, true)`:                                     "2|2",
		`string.find("abc", "(b)(c)")`:                                         "2|3|b|c",
		`string.find("abc", "z")`:                                              "nil",
		`string.find("abc", "b", -1)`:                                          "nil",
		`string.match("v1.23.4", "^v(%d+)%.(%d+)")`:                            "1|23",
		`string.match("key=val", "(%w+)=(%w*)$")`:                              "key|val",
		`string.match("  trim  ", "^%s*(.-)%s*$")`:                             "trim",
		`string.match("f(a(b)c)d", "%b()")`:                                    "(a(b)c)",
		`string.match("abab", "(ab)%1")`:                                       "ab",
		`string.match("x-y_z", "[%w_-]+")`:                                     "x-y_z",
		`string.match("x]y", "[]]")`:                                           "]",
		`string.match("abc", "[^a-b]")`:                                        "c",
		`string.match("abc", "()c")`:                                           "3",
		`string.match("color colour", "colou?r$")`:                             "colour",
		`string.match("ABC123", "%u+"), string.match("ABC123", "%U+")`:         "ABC|123",
		`string.gsub("hello", "l", "L")`:                                       "heLLo|2",
		`string.gsub("hello", "l", "L", 1)`:                                    "heLlo|1",
		`string.gsub("abc", "%w", "%0%0-")`:                                    "aa-bb-cc-|3",
		`string.gsub("a b", "(%w) (%w)", "%2 %1")`:                             "b a|1",
		`string.gsub("abc", "", "-")`:                                          "-a-b-c-|4",
		`string.gsub("$x", "%$(%w)", {x = "1"})`:                               "1|1",
		`string.gsub("abc", "b", function(m) return m:upper() end)`:            "aBc|1",
		`string.gsub("aaa", "^a", "b")`:                                        "baa|1",
		`string.format("%d %s %q %x %5s|%-5s|%%", 3, "a", "b", 255, "r", "l")`: `3 a "b" ff     r|l    |%`,
		`string.byte("A"), string.char(72, 105), ("abc"):upper(), ("ABC"):lower(), ("abc"):reverse(), ("abc"):len()`:                                                                    "65|Hi|ABC|abc|cba|3",
		`(function() local o = {} for w in string.gmatch("a,b,c", "[^,]+") do o[#o + 1] = w end return unpack(o) end)()`:                                                                "a|b|c",
		`(function() local t = {3, 1, 2} table.sort(t) table.insert(t, 9) table.insert(t, 1, 0) table.remove(t, 2) return unpack(t) end)()`:                                             "0|2|3|9",
		`(function() local t = {1, 2, 3} table.sort(t, function(a, b) return a > b end) return unpack(t) end)()`:                                                                        "3|2|1",
		`(function() local t, i = {1, 2}, 1 t[i], t[i + 1] = t[i + 1], t[i] i, t[i] = 5, 7 return i, t[1], t[2] end)()`:                                                                 "5|7|1",
		`(function() local t = {[1] = "a", ["k-x"] = "b"} t["y z"] = "c" return t[1], t["k-x"], t["y z"] end)()`:                                                                        "a|b|c",
		`(function() local ok, e = pcall(function() error("no") end) return ok, e end)()`:                                                                                               "false|check.lua:7: no",
		`math.floor(2.7), math.max(1, 5), tonumber("0x10"), type(os.time())`:                                                                                                            "2|5|16|number",
		`io, require, loadstring, load, dofile, setmetatable, getmetatable, debug, coroutine, os.execute, os.getenv, rawset, print, package, xpcall, setfenv, newproxy, collectgarbage`: strings.TrimSuffix(strings.Repeat("nil|", 18), "|"),
	} {
		if got := evaluate(t, expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
}

func TestHostileScripts(t *testing.T) {
	scripts := map[string]string{
		"endless loop":           `while true do end`,
		"loop that catches":      `while true do pcall(function() while true do end end) end`,
		"repeated strings":       `local s = string.rep("x", 1e9) return {}`,
		"repeated often":         `local t = {} for i = 1, 1e6 do t[i] = string.rep("x", 1e5) end`,
		"repeated, overflow":     `return string.rep("xxxxxxxx", 2^62)`,
		"doubled strings":        `local s = "x" while true do s = s .. s end`,
		"doubled, never in Lua":  `local s = "x" for i = 1, 60 do s = s .. s end return {}`,
		"joined tables":          `local s = string.rep("x", 1e5) local t = {} for i = 1, 1000 do t[i] = s end return table.concat(t)`,
		"joined with separators": `local t = {} for i = 1, 1000 do t[i] = "" end return table.concat(t, string.rep("x", 1e5))`,
		"replaced":               `local s = string.rep("a", 1e5) return string.gsub(s, "a", s)`,
		"replaced by references": `local s = string.rep("a", 1e4) return string.gsub(s, ".+", string.rep("%0", 5000))`,
		"formatted":              `local s = string.rep("a", 1e6) return string.format(string.rep("%s", 100), s, s, s, s, s, s, s, s, s, s)`,
		"huge table":             `local t = {} for i = 1, 1e9 do t[i] = i end`,
		"far index":              `local t = {} t[60000000] = 1`,
		"far indices":            `local k = {} for i = 1, 1e5 do local t = {} t[100000] = 1 k[i] = t end`,
		"far index in a table":   `return {[60000000] = 1}`,
		"many tables":            `local k = {} for i = 1, 1e6 do k[i] = {a = 1} end`,
		"many keys":              `local k = {} for i = 1, 1e7 do k["k" .. i] = i end`,
		"catastrophic pattern":   `return string.find(string.rep("a", 40), string.rep("a?", 40) .. string.rep("a", 40))`,
		"nested repetition":      `return string.match(string.rep("a", 5000), ".-.-.-.-.-b")`,
		"greedy repetition":      `return string.match(string.rep("a", 5000), ".*.*.*.*b")`,
		"balanced":               `return string.find(string.rep("(", 1e6), "%b()")`,
		"gmatch":                 `for _ in string.gmatch(string.rep("a", 1e5), ".*.*.*b") do end`,
		"sort with a bad order":  `local t = {} for i = 1, 1e5 do t[i] = i end table.sort(t, function() return true end)`,
		"caught error texts":     `local s = string.rep("x", 1e6) local t = {} for i = 1, 1e6 do local _, e = pcall(error, s) t[i] = e end`,
		"insert at the front":    `local t = {} for i = 1, 1e6 do table.insert(t, 1, i) end`,
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			c := check(t, script)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begin := time.Now()
			_, err := c.GetResourceHealth(object(t, `{}`))
			took := time.Since(begin)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrBudget) {
				t.Errorf("error is %v", err)
			}
			// Twice the limit, for machines that are busy.
			if took > 2*DefaultLimits().Time {
				t.Errorf("took %v", took)
			}
			// All that was ever allocated: what was in use at once is less.
			if made := after.TotalAlloc - before.TotalAlloc; made > 400<<20 {
				t.Errorf("allocated %d MiB", made>>20)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	deep := "return " + strings.Repeat("f(", 5000) + strings.Repeat(")", 5000)
	for script, want := range map[string]error{
		`local function f() return 1 + f() end return f()`:          ErrScript,
		`local function f() return 1 + select(2, pcall(f)) end f()`: ErrScript,
		`return string.rep("x", 10):nothing()`:                      ErrScript,
		`return obj.a.b.c`:                                          ErrScript,
		`error({})`:                                                 ErrScript,
		`return string.find("a", "[a")`:                             ErrScript,
		`return string.find("a", "%")`:                              ErrScript,
		`return string.find("a", "(a")`:                             ErrScript,
		`return string.match("a", "a)")`:                            ErrScript,
		`return string.find("a", string.rep("(", 40))`:              ErrScript,
		`return string.format("%1000d", 1)`:                         ErrScript,
		`return string.format("%y", 1)`:                             ErrScript,
		`return os.date(string.rep("%c", 100))`:                     ErrScript,
		`return unpack({}, 1, 1e8)`:                                 ErrScript,
		`_G["%concat"] = nil return "a" .. "b"`:                     ErrScript,
		`return 1`:                                                  ErrResult,
		`return {}`:                                                 ErrResult,
		`return {status = "Fine"}`:                                  ErrResult,
	} {
		if _, err := check(t, script).GetResourceHealth(object(t, `{}`)); !errors.Is(err, want) {
			t.Errorf("%.80s: error %v, want %v", script, err, want)
		}
	}
	for _, script := range []string{`return {`, `x = = 1`, strings.Repeat(" ", maxScript+1), `goto nowhere`, deep} {
		if _, err := Compile("check.lua", script, DefaultLimits()); !errors.Is(err, ErrScript) {
			t.Errorf("%.80s: error %v", script, err)
		}
	}
	if got, err := check(t, `return nil`).GetResourceHealth(object(t, `{}`)); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestDeepScripts: nesting as deep as a script can be long is refused before the
// compiler sees it.
func TestDeepScripts(t *testing.T) {
	for _, parts := range [][2]string{
		{"{", "}"}, {"not ", ""}, {"- ", ""}, {"1 ..", ""}, {"function() return ", " end"}, {"a[", "]"}, {"1 + (", ")"},
	} {
		n := maxScript/(len(parts[0])+len(parts[1])) - 20
		if _, err := Compile("deep.lua", "return "+strings.Repeat(parts[0], n)+"1"+strings.Repeat(parts[1], n), DefaultLimits()); !errors.Is(err, ErrScript) {
			t.Errorf("%q: error %v", parts, err)
		}
	}
}

// TestAtOnce is for the race detector.
func TestAtOnce(t *testing.T) {
	c, u := check(t, conditions), object(t, `{status: {conditions: [{type: Ready, status: "True"}]}}`)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 20 {
				if got, err := c.GetResourceHealth(u); err != nil || got.Status != health.Healthy {
					t.Errorf("%v, %v", got, err)
				}
			}
		})
	}
	wait.Wait()
}

func TestLargeObjects(t *testing.T) {
	u := object(t, `{}`)
	var list []any
	for range 200_000 {
		list = append(list, map[string]any{"a": int64(1)})
	}
	u.Object["status"] = list
	if _, err := check(t, conditions).GetResourceHealth(u); !errors.Is(err, ErrObject) {
		t.Errorf("error %v", err)
	}
}

func TestLongMessages(t *testing.T) {
	got, err := check(t, `return {status = "Healthy", message = string.rep("x", 1e6)}`).GetResourceHealth(object(t, `{}`))
	if err != nil || len(got.Message) > maxMessage+3 {
		t.Errorf("%v", err)
	}
	_, err = check(t, `error(string.rep("x", 1e6))`).GetResourceHealth(object(t, `{}`))
	if !errors.Is(err, ErrScript) || len(err.Error()) > maxMessage+100 {
		t.Errorf("%d bytes", len(err.Error()))
	}
}

// TestRunsAreApart: nothing that one run does is seen by the next, or changes the object.
func TestRunsAreApart(t *testing.T) {
	c := check(t, `
		if seen or string.gone or obj.mine then return {status = "Degraded", message = "leak"} end
		seen, string.gone, obj.mine = true, true, true
		return {status = "Healthy"}`)
	u := object(t, `{a: b}`)
	for range 2 {
		got, err := c.GetResourceHealth(u)
		if err != nil || got.Status != health.Healthy {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if diff := cmp.Diff(object(t, `{a: b}`), u); diff != "" {
		t.Error(diff)
	}
}

func TestAsOverride(t *testing.T) {
	u := object(t, `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "True"}]}}`)
	a := health.New(health.Overrides{{Group: "example.com", Kind: "Widget"}: check(t, conditions)})
	if got := health.Assess(a, u); got == nil || got.Status != health.Healthy {
		t.Errorf("%v", got)
	}
}

func BenchmarkCheck(b *testing.B) {
	c := check(b, conditions)
	u := object(b, `{status: {conditions: [{type: A}, {type: Ready, status: "False", message: broken}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.GetResourceHealth(u); err != nil {
			b.Fatal(fmt.Errorf("check: %w", err))
		}
	}
}
