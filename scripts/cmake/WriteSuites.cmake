# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# {"name", R"(text)"}, for every suite file: rows of an array, by name.
set(rows "")
foreach(suite IN LISTS SUITES)
  get_filename_component(name ${suite} NAME_WE)
  file(READ ${suite} text)
  string(APPEND rows "{\"${name}\", R\"suite(${text})suite\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${rows}")
