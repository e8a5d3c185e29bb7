// SPDX-License-Identifier: Apache-2.0

// Package lua runs health checks that are written in Lua, with Argo CD's
// conventions: the object is the global obj, and the script returns a table with
// status and message.
//
// Scripts and objects are written by people who may wish the engine ill, so a run
// has a budget of steps, of bytes and of time, and ends with ErrBudget when one of
// them is used up. The interpreter cannot do that by itself. This is how it is
// done:
//
//   - Steps and time. The interpreter asks its context before every instruction
//     whether it is done. The context here counts those questions, and looks at
//     the clock now and then. Once a budget is used up it stays so: a script
//     that catches the error fails again at its next instruction.
//   - Library functions are one instruction each, whatever they do. So all of
//     them that can take long or make much are our own, and charge what they do:
//     the whole string library, with its own pattern matcher, and most of table.
//   - Two instructions can make as much as they like at once: the concatenation
//     of strings, and the assignment to a number far beyond a table's end. They are
//     taken out of the program before it is compiled (see rewrite), and calls of
//     functions that charge are put in their place. The names of those functions
//     cannot be written in Lua. A table's making is charged in the same way.
//   - Recursion is bounded by the size of the call stack.
//
// What is not needed to look at an object is not there: no files, no environment,
// no loading of code, no metatables, no coroutines.
package lua
