# Writes PAGE: TEMPLATE with the text of TABLE, or with a line that says that there is none.
cmake_minimum_required(VERSION 3.25)
set(table "(Not run on this machine.)")
if(EXISTS ${TABLE})
    file(READ ${TABLE} table)
endif()
configure_file(${TEMPLATE} ${PAGE} @ONLY)
